// The session of the model for tests.
#ifndef WHERRY_ENGINE_TESTING_FAKE_SESSION_H_
#define WHERRY_ENGINE_TESTING_FAKE_SESSION_H_

#include <memory>

#include "testing/fake_model.h"

namespace wherry {

// model: must outlive the session.
std::unique_ptr<Session> open_fake_session(const FakeModel& model, const SessionLimits& limits);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TESTING_FAKE_SESSION_H_
