timeout 300 ./workbook dev peers --sweep=random --draw-seed 20261130 --out $OUT/2026-11-30-random.json --within 180
