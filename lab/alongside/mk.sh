# mk.sh: variants of 12_alongside.cu into objects, one program. NAME:sed-script ..
export PATH=$PATH:/usr/local/cuda/bin
M=TREE; F="-I $M/common -I $M -I $M/13_fp8 -O3 -DNDEBUG -std=c++20 -gencode arch=compute_90a,code=sm_90a -diag-suppress 177"
VAR="V(followed)"; O=""
nvcc $F -c $M/13_fp8/11_followed.cu -o followed.o & 
python3 - <<'P'
t=open('TREE/13_fp8/11_followed.cu').read()
i=t.index('extern const attention::Rung followed')
t=t[:i]+'''void loop_alone(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128, 256>(p, [&]<class T, int D>() {
    EightBitTiles eight = tiles_in_workspace(p, args.workspace, true);
    eight.q = static_cast<e4m3*>(const_cast<void*>(args.q)), eight.k = static_cast<e4m3*>(const_cast<void*>(args.k));
    Problem unrotated = p; unrotated.scale *= D;
    cudaMemsetAsync(eight.taken, 0, 4, stream);
    attend<Followed, T, D>(unrotated, args, eight, tile_scales(eight), stream);
  });
}
}
'''
open('loop_alone.cu','w').write(t)
P
nvcc $F -c loop_alone.cu -o loop_alone.o
wait
for x in "$@"; do n=${x%%:*}; s=${x#*:}; sed -e "s/\balongside\b/$n/g" -e "s/V::$n/V::alongside/" -e "$s" $M/13_fp8/12_alongside.cu > v_$n.cu; nvcc $F -Xptxas -v -c v_$n.cu -o v_$n.o 2>&1 | grep -E "error|spill" | sort | uniq -c; VAR="$VAR V($n)"; O="$O v_$n.o"; done
nvcc $F "-DVARIANTS=$VAR" -c main.cu -o main.o
ls $M/build/cpu/common/*/*.a 2>/dev/null | head -0
nvcc -gencode arch=compute_90a,code=sm_90a -cudart static main.o followed.o loop_alone.o $O l_*.o -I $M/common -std=c++20 -o lab -Xcompiler -static-libstdc++ -Xcompiler -static-libgcc -lcuda 2>&1 | grep -v warn | head; ls -la lab
