#include "scheduling/waiting_queue.h"

#include <algorithm>

namespace wherry {

namespace {

constexpr size_t kMostUsers = 4096;  // whose account is kept

}  // namespace

double WaitingQueue::served(uint64_t user) const {
  auto it = served_.find(user);
  return it == served_.end() ? 0 : it->second;
}

double WaitingQueue::least_served() const {
  double least = 0;
  bool any = false;
  for (const auto& [priority, users] : levels_) {
    for (const auto& [user, line] : users) {
      least = any ? std::min(least, served(user)) : served(user);
      any = true;
    }
  }
  return least;
}

void WaitingQueue::push(Request& request) {
  double least = least_served();
  if (served_.size() >= kMostUsers) served_.clear();
  double& account = served_[request.user];
  account = std::max(account, least);
  levels_[request.priority][request.user].insert(&request);
  ++size_;
}

void WaitingQueue::remove(Request& request) {
  auto level = levels_.find(request.priority);
  if (level == levels_.end()) return;
  auto line = level->second.find(request.user);
  if (line == level->second.end() || line->second.erase(&request) == 0) return;
  --size_;
  if (line->second.empty()) level->second.erase(line);
  if (level->second.empty()) levels_.erase(level);
}

Request* WaitingQueue::front() const {
  if (levels_.empty()) return nullptr;
  Request* best = nullptr;
  double least = 0;
  for (const auto& [user, line] : levels_.begin()->second) {
    Request* first = *line.begin();
    double tokens = served(user);
    if (best == nullptr || tokens < least || (tokens == least && first->arrival < best->arrival)) {
      best = first;
      least = tokens;
    }
  }
  return best;
}

void WaitingQueue::charge(uint64_t user, int64_t tokens) {
  served_[user] += static_cast<double>(tokens);
}

}  // namespace wherry
