// The build includes this header before each of xgrammar's sources. It redefines the macros of
// xgrammar's invariant checks, which release builds omit: they stand inside its loops, so each now
// counts a step of the compile or mask budget. An untrusted grammar then ends with an error, the
// same on every machine, instead of blocking a thread.
#ifndef WHERRY_APP_GRAMMAR_XGRAMMAR_HOOKS_H_
#define WHERRY_APP_GRAMMAR_XGRAMMAR_HOOKS_H_

namespace wherry::app {
void count_step();  // throws Error when the budget is used up; see budget.h
}

// The checks in these headers are not counted, because element accesses are too frequent and too
// cheap.
#include "fsm.h"
#include "grammar_impl.h"
#include "support/compact_2d_array.h"
#include "support/dynamic_bitset.h"
#include "support/logging.h"

#undef XGRAMMAR_DCHECK
#define XGRAMMAR_DCHECK(x) \
  while (::wherry::app::count_step(), false) XGRAMMAR_ICHECK(x)

#endif  // WHERRY_APP_GRAMMAR_XGRAMMAR_HOOKS_H_
