// Requests that wait for their turn: by priority, then fairly between tenants, between the users of
// each, then by arrival.
#ifndef WHERRY_ENGINE_SCHEDULING_WAITING_QUEUE_H_
#define WHERRY_ENGINE_SCHEDULING_WAITING_QUEUE_H_

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>

#include "scheduling/request.h"

namespace wherry {

inline uint64_t tenant_of(uint64_t user) { return user >> 32; }

// Among waiting tenants of equal priority the one with the fewest served tokens is next, and among
// its users likewise. A newcomer starts level with those who wait: it neither owes for tokens that
// it got while the queue was empty, nor has it saved any.
class WaitingQueue {
 public:
  void push(Request& request);
  void put_back(Request& request);  // has its old place among its user's
  void remove(Request& request);
  Request* front() const;  // null: nobody waits

  // Tokens computed for a user.
  void charge(uint64_t user, int64_t tokens);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct ByArrival {
    bool operator()(const Request* a, const Request* b) const { return a->arrival < b->arrival; }
  };
  using Line = std::set<Request*, ByArrival>;  // of one user

  // Tokens, of users or of tenants.
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

  std::map<int32_t, std::map<uint64_t, Line>, std::greater<>> levels_;  // by priority, then user
  Accounts tenants_, users_;
  size_t size_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_WAITING_QUEUE_H_
