#include "app/text/pattern/extent.h"

#include <algorithm>

namespace wherry::text {

namespace {

Firsts firsts_of_set(const CodePoints& set) {
  Firsts result;
  for (auto [begin, end] : set.ranges()) {
    for (char32_t code = begin; code < end && code < 128; ++code) result.set(code);
    if (end > 128) result.set(128);
  }
  return result;
}

}  // namespace

std::pair<uint32_t, uint32_t> extent(const Node& node) {
  auto add = [](uint32_t a, uint32_t b) { return a > kUnbounded - b ? kUnbounded : a + b; };
  auto times = [](uint32_t a, uint32_t n) {
    uint64_t product = static_cast<uint64_t>(a) * n;
    return product >= kUnbounded ? kUnbounded : static_cast<uint32_t>(product);
  };
  std::pair<uint32_t, uint32_t> all{0, 0};
  switch (node.kind) {
    case Node::kSet:
      return {1, 1};
    case Node::kSequence:
      for (const Node& child : node.children) {
        auto [least, most] = extent(child);
        all = {add(all.first, least), add(all.second, most)};
      }
      return all;
    case Node::kChoice:
      all = {kUnbounded, 0};
      for (const Node& child : node.children) {
        auto [least, most] = extent(child);
        all = {std::min(all.first, least), std::max(all.second, most)};
      }
      return all;
    case Node::kRepeat: {
      auto [least, most] = extent(node.children[0]);
      return {times(least, node.least), times(most, node.most)};
    }
    case Node::kAtomic:
      return extent(node.children[0]);
    default:
      return all;
  }
}

std::optional<Firsts> firsts_of(const Node& node) {
  Firsts result;
  switch (node.kind) {
    case Node::kSet:
      return firsts_of_set(node.set);
    case Node::kSequence:
      for (const Node& child : node.children) {
        // The child is an assertion, so the rest must match, too.
        if (extent(child).second == 0) continue;
        auto own = firsts_of(child);
        if (own) return result | *own;
        if (child.kind != Node::kRepeat || child.least != 0) return std::nullopt;
        auto body = firsts_of(child.children[0]);
        if (!body) return std::nullopt;
        result |= *body;
      }
      return std::nullopt;
    case Node::kChoice:
      for (const Node& child : node.children) {
        auto own = firsts_of(child);
        if (!own) return std::nullopt;
        result |= *own;
      }
      return result;
    case Node::kRepeat:
      if (node.least == 0) return std::nullopt;
      return firsts_of(node.children[0]);
    case Node::kAtomic:
      return firsts_of(node.children[0]);
    default:
      return std::nullopt;
  }
}

}  // namespace wherry::text
