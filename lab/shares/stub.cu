#include <string>
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "attention/chapter.h"
namespace hopper { int forced = 3; extern const attention::Forward wide_forward; constinit const attention::Forward wide_forward = {}; }
namespace attention { std::string not_for_hopper_to_256(const Problem&) { return ""; } }
