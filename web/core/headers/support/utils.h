// Sources of TVM's include its header of this name; what is compiled here takes nothing of it.
#pragma once
