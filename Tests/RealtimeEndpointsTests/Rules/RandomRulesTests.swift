// Runs random programs of clients under random rules files, on all transports. The naive evaluator of rules predicts the
// verdict of every request, and which values each client may receive.
//
// `make rules N=20000 SEED=7` runs more programs.

import Foundation
import Testing

@testable import EndpointFixture

@Suite("Random Realtime Database rules on every transport", .timeLimit(.minutes(60)), .serialized)
struct RandomRulesTests {
  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
  }

  private static let programs = number("HEARTH_RULE_PROGRAMS").map { max(1, $0 / 100) } ?? 6
  private static let first = number("HEARTH_RULE_SEED") ?? 0

  @Test(
    "Each verdict is that of the naive evaluator, and no client receives a value that it may not read",
    arguments: first..<(first + programs))
  func program(seed: Int) async throws {
    try await RealtimeTestServer.run { server in
      var program = try await RandomRulesProgram(seed: UInt64(seed), server)
      for _ in 0..<250 { try await program.step() }
      try await program.finish()
      let counts = program.counts
      print(
        "random rules, seed \(seed): \(counts.allowed) allowed, \(counts.denied) denied, "
          + "\(counts.revoked) listens ended, \(counts.shown) values shown")
      #expect(counts.allowed > 20 && counts.denied > 20 && counts.shown > 0, "seed \(seed)")
    }
  }
}
