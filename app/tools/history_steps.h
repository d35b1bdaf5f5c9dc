// The steps by which history.h rewrites conversations. Each returns messages of the template's
// form: {"role", "content", "tool_calls"?, ...} with a text as content.
#ifndef WHERRY_APP_TOOLS_HISTORY_STEPS_H_
#define WHERRY_APP_TOOLS_HISTORY_STEPS_H_

#include <string>

#include "app/tools/families.h"
#include "app/value/value.h"

namespace wherry::app {

using json::Values;

// Makes the arguments of calls objects. A text that was cut is closed; any other text goes into the
// message's content. as_text: the arguments become JSON texts of objects.
Values with_objects(const Values& messages, bool as_text);
// Writes calls as a text in the family's format.
Values with_written_calls(const Values& messages, const Family& family);
// Makes a turn of each call, followed by its result.
Values with_one_call_a_turn(const Values& messages);
// Makes a turn of the text of turns with calls.
Values with_text_apart(const Values& messages);
// Joins the system messages at the beginning.
Values with_one_system(const Values& messages);
// Makes turns of the user of later system messages.
Values with_reminders(const Values& messages);
// Puts the system's text in front of the user's first.
Values without_system(const Values& messages);
// Leaves out turns of the assistant without any content.
Values without_empty(const Values& messages);
// Joins neighbours of one role.
Values with_joined_turns(const Values& messages);
// Puts a short turn where two turns of one side follow each other with a result between them, or
// where the assistant's turn is the first.
Values with_alternate_turns(const Values& messages);

// Returns a JSON object that was cut, closed; none if the text is not the beginning of one.
Value closed_object(const std::string& text);

}  // namespace wherry::app

#endif  // WHERRY_APP_TOOLS_HISTORY_STEPS_H_
