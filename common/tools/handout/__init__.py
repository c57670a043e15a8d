"""Handing out: the students' tree without solutions, the instructor's, and the autograder's archive."""

from tools.handout.handing_out import Handout, hand_out, page_of_known
