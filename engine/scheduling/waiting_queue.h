// Requests that wait for their turn: by priority, then fairly between users, then by arrival.
#ifndef WHERRY_ENGINE_SCHEDULING_WAITING_QUEUE_H_
#define WHERRY_ENGINE_SCHEDULING_WAITING_QUEUE_H_

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>

#include "scheduling/request.h"

namespace wherry {

// Of the users who wait with equal priority, the one who has been served the fewest tokens is next;
// a user who comes, or comes back, starts level with the least served of those who are there.
class WaitingQueue {
 public:
  void push(Request& request);  // a request that was put back has its old place among its user's
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

  double served(uint64_t user) const;
  double least_served() const;

  std::map<int32_t, std::map<uint64_t, Line>, std::greater<>> levels_;  // by priority, then user
  std::unordered_map<uint64_t, double> served_;                         // tokens
  size_t size_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SCHEDULING_WAITING_QUEUE_H_
