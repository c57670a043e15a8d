"""Does the reader of nvcc's machine code find how wide the accesses of each line are?"""

import unittest

from tools.user_files import access_widths

CODE = """
.text.gemm:
	//## File "/home/someone/sgemm/mine.cu", line 3
        /*0050*/                   LDG.E R3, desc[UR6][R4.64] ;
	//## File "/home/someone/sgemm/mine.cu", line 9
        /*0110*/                   LDS R4, [R2+UR4] ;
        /*0120*/              @!P0 LDS.128 R24, [R2+UR4+0x10] ;
        /*0130*/                   LDS.64 R20, [R2+UR4+0x200] ;
	//## File "/home/someone/sgemm/mine.cu", line 10
        /*0140*/                   LDSM.16.M88.4 R8, [R2] ;
        /*0150*/                   LDGSTS.E.BYPASS.128 [R3], desc[UR6][R4.64] ;
        /*0160*/                   STG.E.U16 desc[UR6][R4.64], R3 ;
        /*0170*/              @UP1 ST.E.U8 desc[UR6][R4.64], R3 ;
"""


class Widths(unittest.TestCase):
    def test_the_widest_of_each_line(self):
        found = access_widths.of_machine_code(CODE)
        self.assertEqual(found, {("sgemm/mine.cu:3", "global_load"): 4, ("sgemm/mine.cu:9", "shared_load"): 16,
                                 ("sgemm/mine.cu:10", "global_store"): 2})

    def test_what_the_engine_reads(self):
        self.assertEqual(access_widths.text({("b.cu:2", "shared_load"): 16, ("a.cu:1", "global_store"): 4}),
                         "a.cu:1 global_store 4\nb.cu:2 shared_load 16\n")


if __name__ == "__main__":
    unittest.main()
