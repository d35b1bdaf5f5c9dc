// Read before each of xgrammar's sources. What its release builds leave out, checks of its own
// invariants, are places that its loops come by: each counts a step of what a compile or a mask may
// take, so that an untrusted grammar ends with an error, the same one on every machine, rather than
// with a thread that is never heard of again.
#ifndef WHERRY_ENGINE_APP_GRAMMAR_XGRAMMAR_HOOKS_H_
#define WHERRY_ENGINE_APP_GRAMMAR_XGRAMMAR_HOOKS_H_

namespace wherry::app {
void count_step();  // throws Error once there are too many; see budget.h
}

// Their accesses to single elements are not counted: too many, and too cheap.
#include "fsm.h"
#include "grammar_impl.h"
#include "support/compact_2d_array.h"
#include "support/dynamic_bitset.h"
#include "support/logging.h"

#undef XGRAMMAR_DCHECK
#define XGRAMMAR_DCHECK(x) \
  while (::wherry::app::count_step(), false) XGRAMMAR_ICHECK(x)

#endif  // WHERRY_ENGINE_APP_GRAMMAR_XGRAMMAR_HOOKS_H_
