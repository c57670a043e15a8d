"""The ways round a loop, and what they cost each unit, of machine code that is written here."""

import unittest

from tools.machine_code import ways

CODE = """
.text._Z4loopv:
        /*0000*/                   FFMA R0, R0, R0, R0 ;
.L_x_0:
        /*0010*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR4], R24, gsb0 ;
.L_x_1:
        /*0020*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0030*/              @!P0 BRA `(.L_x_1) ;
        /*0040*/               @P1 BRA `(.L_x_2) ;
        /*0050*/                   MUFU.EX2 R0, R0 ;
        /*0060*/                   FMUL R0, R0, R1 ;
.L_x_2:
        /*0070*/               @P2 BRA `(.L_x_3) ;
        /*0080*/                   FSEL R0, R0, -INF , P3 ;
        /*0088*/                   FADD R1, R0, R0 ;
.L_x_3:
        /*0090*/                   FMNMX R0, R0, R1, !PT ;
        /*00a0*/                   UIADD3 UR4, UR4, 0x1, URZ ;
        /*00b0*/               @P4 BRA `(.L_x_0) ;
        /*00c0*/                   EXIT ;
.L_x_4:
        /*00d0*/                   BRA `(.L_x_4) ;
"""


class Ways(unittest.TestCase):
    def test_each_way_without_a_mask(self) -> None:
        without, with_exponential = ways.ways(CODE, "loop")["loop"]
        self.assertEqual(without, {"instructions": 8, "FMA": 0, "ALU": 1, "MUFU": 0})
        self.assertEqual(with_exponential, {"instructions": 10, "FMA": 1, "ALU": 1, "MUFU": 1})

    def test_kernels_of_other_names_and_without_products(self) -> None:
        self.assertEqual(ways.ways(CODE, "other"), {})
        self.assertEqual(ways.ways(CODE.replace("HGMMA", "HMMA"), "loop"), {})


if __name__ == "__main__":
    unittest.main()
