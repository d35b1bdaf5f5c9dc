// The compiler option -Xcc -I finds this header: in the output of `wherry package`, or in
// engine/include and app/include.
#include <wherry_app.h>
