// Runs random programs of clients under random rules files, on all transports. In every second program the writes are
// decided in the background. The naive evaluator, a simple second implementation of rules, predicts the verdict of
// every request, and the values that each client may receive.
//
// `make realtime-rules N=20000 SEED=7` runs more programs.

import Foundation
import Testing

@testable import EndpointFixture
@testable import RealtimeEngine

@Suite("Random Realtime Database rules on every transport", .timeLimit(.minutes(60)), .serialized)
struct RandomRealtimeRulesTests {
  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
  }

  @Test("Each verdict equals the naive evaluator's, and no client receives a value that it may not read")
  func programs() async throws {
    let programs = Self.number("HEARTH_REALTIME_RULES").map { max(1, $0 / 100) } ?? 6
    let first = Self.number("HEARTH_REALTIME_RULES_SEED") ?? 0
    var sum = RealtimeRulesProgram.Counts()
    for seed in first..<(first + programs) {
      let staging = seed % 2 == 0 ? StagingLimits.standard : .backgroundDecisions
      try await RealtimeTestServer.run(staging: staging) { server in
        var program = try await RealtimeRulesProgram(seed: UInt64(seed), server)
        for _ in 0..<250 { try await program.step() }
        try await program.finish()
        sum.add(program.counts)
      }
    }
    print(
      "random rules: \(sum.allowed) allowed, \(sum.denied) denied, \(sum.revoked) listens ended, "
        + "\(sum.shown) values shown to others")
    #expect(sum.allowed > 30 * programs && sum.denied > 30 * programs)
    #expect(sum.revoked > programs && sum.shown > 5 * programs)
  }
}
