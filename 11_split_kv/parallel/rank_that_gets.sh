#!/bin/sh
# rank_that_gets.sh SIGNAL SECONDS PROGRAM ARGUMENTS..: a rank that gets this signal so many seconds after its start, in the middle
# of its work. Its launcher sees nothing of it: the process that it has started lives on.
signal=$1 seconds=$2
shift 2
"$@" &
rank=$!
sleep "$seconds"
kill -"$signal" $rank
trap 'kill -KILL $rank 2> /dev/null; exit' TERM
sleep 60 &
wait $!
