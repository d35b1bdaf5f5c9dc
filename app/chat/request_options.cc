#include "app/chat/request_options.h"

#include "app/chat/sampling.h"

namespace wherry::app {

void set_owner(const RequestOptions& options, uint64_t& user, uint64_t& salt) {
  constexpr uint64_t kLower = 0xffffffff;
  if (user == 0 && options.peer) user = number_of("peer " + *options.peer);
  if (!options.key) return;
  user = (number_of("key " + *options.key) & ~kLower) | (user & kLower);
  salt = number_of(*options.key + " " + std::to_string(salt));
}

}  // namespace wherry::app
