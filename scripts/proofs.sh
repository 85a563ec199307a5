#!/usr/bin/env bash
# Runs a proof at length; `make test` runs each one briefly. Usage: proofs.sh PROOF N [SEED].
#   differential     N random programs of Firestore's queries against a naive evaluator
#   listeners        N random histories of Firestore's listeners, with kills, resumes and resets
#   access           N random programs on two engines, and two servers, with different denied documents; every outcome must be the same
#   realtime-rules   N random rules files of the Realtime Database against a naive evaluator: 60 decisions each in process,
#                    and N/100 programs of 250 steps on all transports, where no client may receive what it may not read
#   serializability  N times some thousand concurrent transactions, checked for anomalies
#   replay           N random programs on the Realtime Database against a naive tree; replayed pushes rebuild the state
#   kills            N kills of the server while clients write; every acknowledged write must survive
#   convergence      N random programs on several clients of each Swift SDK with kills, restarts from disk, and writes that
#                    the server and its rules reject
#   rules            N random rules files against a naive evaluator, alone and on an engine; rules replaced N times under load
# A failure prints the seed that reproduces it.
set -uo pipefail
cd "$(dirname "$0")/.."
proof=${1:-}
count=${2:-}
seed=${3:-1}
case "$proof" in
  differential)
    export HEARTH_PROGRAMS=$count HEARTH_SEED=$seed
    tests='DifferentialTests'
    ;;
  listeners)
    export HEARTH_LISTENER_PROGRAMS=$count HEARTH_SEED=$seed
    tests='ListenerModelTests|ListenerKillTests'
    ;;
  access)
    export HEARTH_ACCESS_PROGRAMS=$count HEARTH_SEED=$seed
    tests='NoninterferenceTests|TransportNoninterferenceTests'
    ;;
  realtime-rules)
    export HEARTH_REALTIME_RULES=$count HEARTH_REALTIME_RULES_SEED=$seed
    tests='SecurityRulesTests.NaiveRealtimeRulesTests|RealtimeEndpointsTests.RandomRealtimeRulesTests'
    ;;
  serializability)
    export HEARTH_SERIALIZABILITY=$count HEARTH_SEED=$seed
    tests='SerializabilityTests'
    ;;
  replay)
    export HEARTH_REPLAY_PROGRAMS=$count HEARTH_REPLAY_SEED=$seed
    tests='RealtimeEngineTests.(ReplayTests|WindowedListenTests)|RealtimeEndpointsTests.DeniedDataTests'
    ;;
  kills)
    export HEARTH_KILLS=$count HEARTH_KILLS_SEED=$seed
    tests='RealtimeEndpointsTests.CrashLoopTests'
    ;;
  convergence)
    export HEARTH_CONVERGENCE=$count HEARTH_CONVERGENCE_SEED=$seed
    tests='(FirebaseDatabaseTests|FirebaseFirestoreTests).ConvergenceTests'
    ;;
  rules)
    export HEARTH_RULES_PROGRAMS=$count HEARTH_SEED=$seed
    tests='SecurityRulesTests.(NaiveComparisonTests|DeniedByRulesTests)|EmulatorSuiteTests.RulesSwapTests'
    ;;
  *)
    echo "proofs.sh: there is no proof '$proof': differential, listeners, access, realtime-rules, serializability, replay, kills, convergence or rules" >&2
    exit 2
    ;;
esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
began=$SECONDS
# shellcheck disable=SC2086 # FLAGS is a list of words
swift test --skip-build --no-parallel --filter "$tests" ${FLAGS:-} 2>&1 | grep -avE 'started\.$' | tee "$log"
status=${PIPESTATUS[0]}
if [ "$status" != 0 ] || ! grep -aqE '✔ Test run with [1-9]' "$log"; then
  echo "$proof: FAILED; run it again with N=$count SEED=$seed"
  exit 1
fi
echo "$proof: N=$count from seed $seed in $((SECONDS - began)) s: $(grep -a '✔ Test run with' "$log")"
