// The queue of waiting requests: ordered by priority, then fairly between tenants and between each
// tenant's users, then by arrival.
#ifndef WHERRY_ENGINE_SCHEDULING_WAITING_QUEUE_H_
#define WHERRY_ENGINE_SCHEDULING_WAITING_QUEUE_H_

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>

#include "scheduling/request.h"

namespace wherry {

inline uint64_t tenant_of(uint64_t user) { return user >> 32; }

// Picks the next waiting request: among tenants of equal priority, the one with the fewest served
// tokens is next, and among its users likewise. A new tenant or user starts at the level of those
// that wait: tokens from the time when the queue was empty give it neither debt nor credit.
class WaitingQueue {
 public:
  void push(Request& request);
  void requeue(Request& request);  // keeps the request's arrival among its user's requests
  void remove(Request& request);
  Request* front() const;  // returns null if the queue is empty

  // Adds computed tokens to the accounts of a user and its tenant.
  void charge(uint64_t user, int64_t tokens);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct ByArrival {
    bool operator()(const Request* a, const Request* b) const { return a->arrival < b->arrival; }
  };
  using UserQueue = std::set<Request*, ByArrival>;  // the waiting requests of one user

  // Counts the tokens served to users or tenants.
  class Accounts {
   public:
    double of(uint64_t whose) const;
    void charge(uint64_t whose, double tokens) { account(whose) += tokens; }
    void settle(uint64_t whose, double least, double most);

   private:
    double& account(uint64_t whose);

    std::unordered_map<uint64_t, double> served_;
  };

  void settle(uint64_t user);

  // Waiting requests by priority (highest first), then by user.
  std::map<int32_t, std::map<uint64_t, UserQueue>, std::greater<>> levels_;
  Accounts tenants_, users_;
  size_t size_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_WAITING_QUEUE_H_
