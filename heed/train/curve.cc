// SPDX-License-Identifier: Apache-2.0
#include "heed/train/curve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "heed/base/describe.h"

namespace heed::train {
namespace {

constexpr double kWidth = 760, kLeft = 64, kRight = 16, kTop = 16, kBottom = 32;

constexpr const char* kStyle = R"(
  :root { color-scheme: light dark; --ink: #1f2328; --faint: #d0d7de; --page: #ffffff; --train: #8fa7c4; --dev: #b3420f; }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6edf3; --faint: #3a424c; --page: #0d1117; --train: #4d6a8f; --dev: #ff9f6b; }
  }
  body { margin: 2rem auto; max-width: 800px; padding: 0 1rem; background: var(--page); color: var(--ink);
         font: 15px/1.5 system-ui, sans-serif; }
  h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 1.5rem 0 0.25rem; }
  svg { width: 100%; height: auto; } text { fill: var(--ink); font-size: 12px; }
  .grid { stroke: var(--faint); } .line { fill: none; stroke-width: 1.5; }
  .train { stroke: var(--train); } .dev { stroke: var(--dev); stroke-width: 2; } .dot { fill: var(--dev); }
  .key { display: inline-block; width: 1.2em; height: 0.25em; vertical-align: middle; margin: 0 0.4em 0 1em; }
)";

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", x);
  return text;
}
std::string place(double x) { return shortest(std::round(x * 10) / 10); }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return result;
}

// The smallest of 1, 2, 5, 10, 20, ... (or their tenths) that needs at most `most` steps.
double tick(double extent, int most) {
  const double wanted = std::max(extent, 1e-30) / most, power = std::pow(10, std::floor(std::log10(wanted)));
  for (const double factor : {1, 2, 5}) {
    if (factor * power >= wanted) return factor * power;
  }
  return 10 * power;
}

// From steps and values to the picture.
class Plot {
 public:
  Plot(double height, double last_step, double low, double high)
      : height_(height), last_(std::max(1.0, last_step)), step_(tick(high - low, 6)) {
    low_ = std::floor(low / step_) * step_;
    high_ = std::max(low_ + step_, std::ceil(high / step_) * step_);
  }

  double x(double step) const { return kLeft + (kWidth - kLeft - kRight) * step / last_; }
  double y(double value) const { return kTop + (height_ - kTop - kBottom) * (high_ - value) / (high_ - low_); }

  std::string axes() const {
    std::string svg;
    for (double value = low_; value <= high_ + step_ / 2; value += step_) {
      const double clean = std::abs(value) < step_ / 1e6 ? 0 : value;
      line_of(svg, kLeft, y(value), kWidth - kRight, y(value));
      text_of(svg, kLeft - 8, y(value) + 4, "end", number(clean));
    }
    const double step = std::max(1.0, tick(last_, 8));
    for (double at = 0; at <= last_; at += step) text_of(svg, x(at), height_ - 10, "middle", number(at));
    return svg;
  }
  std::string curve(const std::vector<Point>& points, const char* name) const {
    std::string svg = std::string("<polyline class=\"line ") + name + "\" points=\"";
    for (const Point& point : points)
      svg += place(x(static_cast<double>(point.step))) + "," + place(y(point.value)) + " ";
    return svg + "\"/>\n";
  }
  std::string dots(const std::vector<Point>& points) const {
    std::string svg;
    for (const Point& point : points) {
      svg += "<circle class=\"dot\" r=\"3\" cx=\"" + place(x(static_cast<double>(point.step))) + "\" cy=\"" +
             place(y(point.value)) + "\"><title>step " + std::to_string(point.step) + ": " + number(point.value) +
             "</title></circle>\n";
    }
    return svg;
  }
  std::string picture(const std::string& label, const std::string& inside) const {
    return "<svg role=\"img\" aria-label=\"" + label + "\" viewBox=\"0 0 " + place(kWidth) + " " + place(height_) +
           "\">\n" + inside + "</svg>\n";
  }

 private:
  static void line_of(std::string& svg, double x1, double y1, double x2, double y2) {
    svg += "<line class=\"grid\" x1=\"" + place(x1) + "\" y1=\"" + place(y1) + "\" x2=\"" + place(x2) + "\" y2=\"" +
           place(y2) + "\"/>\n";
  }
  static void text_of(std::string& svg, double x, double y, const char* anchor, const std::string& text) {
    svg += "<text x=\"" + place(x) + "\" y=\"" + place(y) + "\" text-anchor=\"" + anchor + "\">" + text + "</text>\n";
  }

  double height_, last_, step_, low_ = 0, high_ = 1;
};

struct Extent {
  double low = 0, high = 0, last = 0;
};

Extent extent_of(std::initializer_list<const std::vector<Point>*> curves) {
  Extent extent;
  for (const auto* curve : curves) {
    for (const Point& point : *curve) {
      extent.high = std::max(extent.high, point.value);
      extent.last = std::max(extent.last, static_cast<double>(point.step));
    }
  }
  return extent;
}

// Where BLEU was measured.
std::string bleu_part(const Curves& curves, double last_step) {
  if (curves.dev_bleu.empty()) return "";
  const Extent extent = extent_of({&curves.dev_bleu});
  const Plot plot(240, last_step, extent.low, extent.high);
  const auto best = std::max_element(curves.dev_bleu.begin(), curves.dev_bleu.end(),
                                     [](const Point& a, const Point& b) { return a.value < b.value; });
  return "<h2>BLEU of the dev set</h2>\n" +
         plot.picture("BLEU of the dev set over the steps",
                      plot.axes() + plot.curve(curves.dev_bleu, "dev") + plot.dots(curves.dev_bleu)) +
         "<p>Highest BLEU: " + number(best->value) + " at step " + std::to_string(best->step) + ".</p>\n";
}

}  // namespace

std::string curve_page(const std::string& title, const Curves& curves) {
  const Extent losses = extent_of({&curves.loss, &curves.dev_loss}), rates = extent_of({&curves.rate});
  const Plot loss(380, losses.last, losses.low, losses.high), rate(160, losses.last, rates.low, rates.high);
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>" +
      escaped(title) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" + escaped(title) + "</h1>\n";
  page +=
      "<h2>Loss of a token over the steps<span class=\"key\" style=\"background:var(--train)\"></span>training, with "
      "label smoothing<span class=\"key\" style=\"background:var(--dev)\"></span>dev</h2>\n";
  page += loss.picture(
      "Loss of training and dev set over the steps",
      loss.axes() + loss.curve(curves.loss, "train") + loss.curve(curves.dev_loss, "dev") + loss.dots(curves.dev_loss));
  page += bleu_part(curves, losses.last);
  page += "<h2>Learning rate</h2>\n";
  page += rate.picture("Learning rate over the steps", rate.axes() + rate.curve(curves.rate, "train"));
  if (!curves.dev_loss.empty()) {
    const auto best = std::min_element(curves.dev_loss.begin(), curves.dev_loss.end(),
                                       [](const Point& a, const Point& b) { return a.value < b.value; });
    page += "<p>Lowest dev loss: " + number(best->value) + " at step " + std::to_string(best->step) + ".</p>\n";
  }
  return page + "</body>\n</html>\n";
}

}  // namespace heed::train
