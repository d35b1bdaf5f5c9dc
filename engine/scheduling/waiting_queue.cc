#include "scheduling/waiting_queue.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace wherry {

namespace {

constexpr size_t kMostUsers = 4096;  // upper bound on users (and on tenants) with an account

}  // namespace

double WaitingQueue::Accounts::of(uint64_t whose) const {
  auto it = served_.find(whose);
  return it == served_.end() ? 0 : it->second;
}

void WaitingQueue::Accounts::settle(uint64_t whose, double least, double most) {
  double settled = std::min(std::max(of(whose), least), most);
  account(whose) = settled;
}

double& WaitingQueue::Accounts::account(uint64_t whose) {
  if (served_.size() >= kMostUsers && served_.count(whose) == 0) served_.clear();
  return served_[whose];
}

// Raises the served-token accounts of a user that joins the queue to the level of the users in it.
void WaitingQueue::settle(uint64_t user) {
  // Least and most served tokens: [0] of all tenants, [1] of this tenant's users.
  double least[2] = {HUGE_VAL, HUGE_VAL}, most[2] = {0, 0};
  auto look = [&](int kind, double tokens) {
    least[kind] = std::min(least[kind], tokens);
    most[kind] = std::max(most[kind], tokens);
  };
  for (const auto& [priority, users] : levels_) {
    for (const auto& [other, line] : users) {
      if (other == user) return;  // the user is in the queue already
      bool same = tenant_of(other) == tenant_of(user);
      same ? look(1, users_.of(other)) : look(0, tenants_.of(tenant_of(other)));
    }
  }
  const bool alone = least[1] > most[1];  // true if the whole tenant joins the queue
  if (alone && least[0] <= most[0]) tenants_.settle(tenant_of(user), least[0], most[0]);
  if (!alone) users_.settle(user, least[1], most[1]);
}

void WaitingQueue::push(Request& request) {
  settle(request.user);
  requeue(request);
}

void WaitingQueue::requeue(Request& request) {
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
  // Orders requests by tokens served to the tenant, tokens served to the user, then arrival.
  using Place = std::tuple<double, double, uint64_t>;
  Request* best = nullptr;
  Place place;
  for (const auto& [user, line] : levels_.begin()->second) {
    Request* first = *line.begin();
    Place other(tenants_.of(tenant_of(user)), users_.of(user), first->arrival);
    if (best == nullptr || other < place) best = first, place = other;
  }
  return best;
}

void WaitingQueue::charge(uint64_t user, int64_t tokens) {
  tenants_.charge(tenant_of(user), static_cast<double>(tokens));
  users_.charge(user, static_cast<double>(tokens));
}

}  // namespace wherry
