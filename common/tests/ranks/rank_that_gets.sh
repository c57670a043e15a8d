#!/bin/sh
# rank_that_gets.sh SIGNAL PROGRAM ARGUMENTS..: a rank that gets this signal in the middle of its work. Its launcher sees nothing
# of it: the process that it has started lives on.
signal=$1
shift
"$@" &
rank=$!
sleep 1.5
kill -"$signal" $rank
trap 'kill -KILL $rank; exit' TERM
sleep 60 &
wait $!
