# On other processors Boost.Context switches between fibers (engine/context.h).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(SIMT_NEEDS_BOOST OFF)
else()
  set(SIMT_NEEDS_BOOST ON)
endif()
