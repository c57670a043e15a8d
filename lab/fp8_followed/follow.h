#define VARIANTS ADD("offset", Offset); ADD("by_limit 2", Follow<2, false>); ADD("by_limit 3", Follow<3, false>); ADD("by_limit 4", Follow<4, false>); ADD("before 3", Follow<3, true>);
