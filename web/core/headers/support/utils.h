// Sources of TVM include a header of this name; the sources compiled here need nothing from it.
#pragma once
