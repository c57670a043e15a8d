#!/usr/bin/env bash
# 43: the backward of chapter 12 with LSE and delta as columns (one H200; needs nothing but the GPU). carry: [".carry/43c"]
# About 10 s: bash .carry/43c/gpu.sh
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cp "$here/columns_12" /tmp/columns_12 && chmod +x /tmp/columns_12
begin=$SECONDS
timeout 60 /tmp/columns_12 31 | tee "$OUT/columns.jsonl"
echo "columns: $((SECONDS - begin)) s"
