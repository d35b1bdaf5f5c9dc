// An empty replacement: TVM's sources include a header of this name, but the ones compiled here use
// nothing of it.
#pragma once
