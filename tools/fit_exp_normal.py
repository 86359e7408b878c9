# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomials of heed/kernels/exp-inl.h, by Remez exchange for the least relative error.

exp:     e^r = 1 + r + r^2 P(r), for |r| <= log(2) / 2.
normal:  Phi(-a) e^(a^2/2) = t P(q), t = 1 / (a + K), q = 1 - 2 K t, for 0 <= a <= 13.3, beyond which Phi(-a) is no
         longer a normal f32.

Prints the coefficients, rounded to f32, as C++ literals, the highest first, with the largest relative error.
"""
import math
import struct

POINTS = 2000
K = 2.75


def to_float(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def solve(rows, right):
    """Gaussian elimination with pivots."""
    n = len(rows)
    m = [row[:] + [y] for row, y in zip(rows, right)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(m[r][i]))
        m[i], m[pivot] = m[pivot], m[i]
        for r in range(i + 1, n):
            factor = m[r][i] / m[i][i]
            m[r] = [x - factor * y for x, y in zip(m[r], m[i])]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (m[i][n] - sum(m[i][j] * x[j] for j in range(i + 1, n))) / m[i][i]
    return x


class Fit:
    """target(x) = known(x) + factor(x) * sum_i c_i x^i, on a grid of x."""

    def __init__(self, grid, target, known, factor):
        self.grid, self.target, self.known, self.factor = grid, target, known, factor

    def error(self, c, x):
        value = 0.0
        for coefficient in reversed(c):
            value = value * x + coefficient
        return (self.known(x) + self.factor(x) * value) / self.target(x) - 1

    def worst(self, c):
        return max(abs(self.error(c, x)) for x in self.grid)

    def level(self, points, count):
        """The c for which the error is +e, -e, +e, ... at the points: linear equations in c and e."""
        rows, right = [], []
        for i, x in enumerate(points):
            scale = self.factor(x) / self.target(x)
            rows.append([scale * x**power for power in range(count)] + [(-1.0) ** i])
            right.append(-self.error([], x))
        return solve(rows, right)[:-1]

    def extremes(self, c):
        """Where the error is largest, between one change of its sign and the next."""
        peaks, last = [], None
        for x in self.grid:
            sign = self.error(c, x) > 0
            if sign != last:
                peaks.append(x)
            elif abs(self.error(c, x)) > abs(self.error(c, peaks[-1])):
                peaks[-1] = x
            last = sign
        return peaks

    def remez(self, count):
        low, high = self.grid[0], self.grid[-1]
        need = count + 1
        points = [(low + high) / 2 - (high - low) / 2 * math.cos(math.pi * (i + 0.5) / need) for i in range(need)]
        for _ in range(30):
            c = self.level(points, count)
            peaks = self.extremes(c)
            if len(peaks) < need:
                break
            points = peaks[:need]
        return c


def report(name, fit, count):
    exact = fit.remez(count)
    floats = [to_float(c) for c in exact]
    print(f"{name}: largest relative error {fit.worst(exact):.3g}, with coefficients in f32 {fit.worst(floats):.3g}")
    print("  " + ", ".join(f"{c.hex()}" for c in reversed(floats)))


def main():
    # The reduced argument may pass the end by a little.
    end = math.log(2) / 2 * 1.0005
    grid = [end * (2 * i / POINTS - 1) for i in range(POINTS + 1)]
    report("exp", Fit([x for x in grid if x], math.exp, lambda r: 1 + r, lambda r: r * r), 5)

    width = lambda q: 2 * K / (1 - q) - K  # a
    tail = lambda q: math.erfc(width(q) / math.sqrt(2)) / 2 * math.exp(width(q) ** 2 / 2)
    last = 1 - 2 * K / (13.3 + K)
    grid = [-1 + (last + 1) * i / POINTS for i in range(POINTS + 1)]
    report("normal", Fit(grid, tail, lambda q: 0.0, lambda q: (1 - q) / (2 * K)), 9)


if __name__ == "__main__":
    main()
