// Found by -Xcc -I: the headers of `wherry package`, or engine/include and app/include.
#include <wherry_app.h>
