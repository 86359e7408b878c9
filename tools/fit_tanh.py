# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomial of heed/kernels/tanh-inl.h: tanh(r) = r + r z (k1 + k2 z), z = r^2, for |r| <= log(2) / 4.

k1 and k2 make the largest relative error as small as it can be (Remez exchange: the error reaches it at three points,
with alternating signs), and are then moved to the best floats nearby. Prints them as C++ literals.
"""
import itertools
import math
import struct

# The argument is reduced by a rounded log(2) / 2 with a rounded quotient: it may pass the end by a little.
END = math.log(2) / 4 * 1.0005
GRID = [END * i / 2000 for i in range(1, 2001)]


def error(k1, k2, r):
    z = r * r
    return (r + r * z * (k1 + k2 * z)) / math.tanh(r) - 1


def determinant(m):
    return sum(m[0][i] * (m[1][i - 2] * m[2][i - 1] - m[1][i - 1] * m[2][i - 2]) for i in range(3))


def level(points):
    """k1 and k2 for which the error is +e, -e, +e at the points: three linear equations in k1, k2, e, by Cramer's rule."""
    rows = [[r**3 / math.tanh(r), r**5 / math.tanh(r), (-1.0) ** i] for i, r in enumerate(points)]
    right = [1 - r / math.tanh(r) for r in points]
    replaced = lambda column: [row[:column] + [y] + row[column + 1 :] for row, y in zip(rows, right)]
    return [determinant(replaced(column)) / determinant(rows) for column in (0, 1)]


def best_fit():
    points = [END * math.sin(math.pi * i / 6) for i in (1, 2, 3)]
    for _ in range(20):
        k1, k2 = level(points)
        runs = itertools.groupby(GRID, key=lambda r: error(k1, k2, r) > 0)
        peaks = [max(run, key=lambda r: abs(error(k1, k2, r))) for _, run in runs]
        points = peaks[-3:]
    return k1, k2


def worst(k1, k2):
    return max(abs(error(k1, k2, r)) for r in GRID)


def floats_near(x, steps=4):
    bits = struct.unpack("i", struct.pack("f", x))[0]
    return [struct.unpack("f", struct.pack("i", bits + i))[0] for i in range(-steps, steps + 1)]


def main():
    exact = best_fit()
    k1, k2 = min(itertools.product(*map(floats_near, exact)), key=lambda k: worst(*k))
    print(f"largest relative error {worst(*exact):.4g}, with coefficients in f32 {worst(k1, k2):.4g}")
    print(f"k1 {k1.hex()}  k2 {k2.hex()}")


if __name__ == "__main__":
    main()
