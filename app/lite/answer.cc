#include "app/lite/answer.h"

#include <stdexcept>

namespace wherry::lite {

std::shared_ptr<Answer> Answer::start(wherry_app* app, const std::string& request_json) {
  std::shared_ptr<Answer> answer(new Answer(app));
  // The callback deletes it after the last JSON object.
  auto* kept = new std::shared_ptr<Answer>(answer);
  const int status =
      wherry_app_start(app, request_json.data(), request_json.size(), on_chunk, kept, &answer->id_);
  if (status != WHERRY_OK) {
    delete kept;
    throw std::runtime_error(wherry_app_last_error());
  }
  return answer;
}

void Answer::on_chunk(void* context, const char* json, size_t length, int last) {
  auto* kept = static_cast<std::shared_ptr<Answer>*>(context);
  Answer& self = **kept;
  {
    const std::lock_guard lock(self.mutex_);
    self.json_.emplace_back(json, length);
    self.last_ = last != 0;
  }
  self.more_.notify_all();
  if (last) delete kept;
}

bool Answer::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return more_.wait_for(lock, most, [this] { return !json_.empty(); });
}

Answer::Taken Answer::take() {
  const std::lock_guard lock(mutex_);
  Taken taken{{}, last_};
  taken.json.swap(json_);
  return taken;
}

void Answer::abort() { wherry_app_abort(app_, id_); }  // does nothing if the request has ended

}  // namespace wherry::lite
