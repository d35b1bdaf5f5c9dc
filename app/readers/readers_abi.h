/*
 * The C ABI by which Python reads a model's output and adapts its input: libwherry_readers splits
 * the text of one choice into text, reasoning and tool calls, and rewrites messages that a chat
 * template refuses or leaves out. It is app/tools alone, without the core.
 *
 * Texts are UTF-8; a text without a length ends with a zero byte. Functions that can fail return
 * null on failure; wherry_reader_error() then returns the message of the calling thread's last
 * error. No exception leaves a function. A reader is used by one thread at a time, a history by any
 * number.
 */
#ifndef WHERRY_READERS_ABI_H_
#define WHERRY_READERS_ABI_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define WHERRY_READERS_API __declspec(dllexport)
#else
#define WHERRY_READERS_API __attribute__((visibility("default")))
#endif

#define WHERRY_READERS_ABI_VERSION 2

typedef struct wherry_reader wherry_reader;
typedef struct wherry_history wherry_history;

WHERRY_READERS_API int wherry_readers_abi_version(void); /* WHERRY_READERS_ABI_VERSION */
WHERRY_READERS_API const char* wherry_reader_error(void);

/*
 * Makes the reader of one choice.
 *
 * json: an object with these keys:
 * {"family": index of a row of app/data/tool_families.json, or null if calls are not read,
 *  "tools": {name: JSON Schema of the arguments, ...},
 *  "held": whether a grammar enforces the format of calls,
 *  "thoughts": [opening mark, closing mark] of reasoning, or null if it is not separated,
 *  "opened": whether the prompt ends inside of reasoning,
 *  "most": maximum number of calls, or null}
 * Returns the reader, which wherry_reader_close frees.
 */
WHERRY_READERS_API wherry_reader* wherry_reader_open(const char* json, size_t length);

/*
 * Reads a piece of the output, of any number of tokens. Returns null on failure, else a JSON array,
 * which is valid until the next call with this reader:
 *   [whether the text that was read last is reasoning,
 *    whether the output has the maximum number of calls, so that the rest can be dropped,
 *    new part, ...]
 * A part is one of ["text", text], ["reasoning", text], ["begin", index, id, name],
 * ["arguments", index, text], ["end", index, whole], whose meaning app/tools/output.h describes.
 */
WHERRY_READERS_API const char* wherry_reader_push(wherry_reader* reader, const char* text,
                                                  size_t length);
/* Ends the output. The parts are those of the text that was withheld. */
WHERRY_READERS_API const char* wherry_reader_finish(wherry_reader* reader);
WHERRY_READERS_API void wherry_reader_close(wherry_reader* reader); /* nothing for null */

/*
 * Finds out what a chat template refuses or leaves out; see app/tools/history.h.
 *
 * json: an object with these keys:
 * {"source": text of the template, "special_tokens": {name: text, ...},
 *  "tool_format": name of the family of tool calls}
 * Returns the history, which wherry_history_close frees.
 */
WHERRY_READERS_API wherry_history* wherry_history_open(const char* json, size_t length);

/*
 * Adapts messages. json: an object with these keys:
 * {"messages": messages for the template, "refused": whether the template refused them,
 *  "changes": names of the steps that have changed them already,
 *  "variables": the template's variables and "add_generation_prompt", of refused messages}
 * Returns null on failure, else JSON, which is valid until the thread's next call: null if nothing
 * is changed, or {"messages": [...], "changes": [names of the steps, ...]}.
 */
WHERRY_READERS_API const char* wherry_history_adapt(wherry_history* history, const char* json,
                                                    size_t length);
WHERRY_READERS_API void wherry_history_close(wherry_history* history); /* nothing for null */

/*
 * Returns a schema without the parts that no value satisfies (app/grammar/schema/repair.h), as
 * {"schema": ..., "problems": ["properties.a: why", ...]}, valid until the thread's next call; null
 * on failure.
 */
WHERRY_READERS_API const char* wherry_schema_repair(const char* json, size_t length);
/* Returns the name of a grammar's first rule if no text of it ends (app/grammar/endless.h), else
 * "", as above. */
WHERRY_READERS_API const char* wherry_grammar_endless(const char* text, size_t length);

#ifdef __cplusplus
}
#endif
#endif /* WHERRY_READERS_ABI_H_ */
