// The chapters of the book, from one place.
#pragma once

#include <span>

#include "attention/chapter.h"

// In the order of the book. Generated from the chapters' directories: all_chapters.cc.in.
std::span<const attention::Chapter* const> all_chapters();
