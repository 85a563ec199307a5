// A random policy of tests: some locations are secret to some users, and other operations are denied at random.
//
// Decisions depend only on the policy's number, the user and the paths. So a repeated decision has the same result
// under the same policy.

import Access
import Locking
import RandomModels
import RealtimeModel

/// A random policy. It counts its decisions.
final class SecretsPolicy: AccessPolicy {
  typealias Product = RealtimeAccess

  /// For each user, and for nobody (`""`), the locations that it may not see.
  private let secrets: [String: Set<Path>]
  private let number: Int
  private let decisions: Guarded<Int>

  /// - Parameters:
  ///   - number: the number of the policy in its program.
  ///   - decisions: the count of decisions of all policies of the program.
  init(
    _ number: Int, users: [String], locations: [Path], _ random: inout SeededGenerator,
    _ decisions: Guarded<Int>
  ) {
    var secrets: [String: Set<Path>] = [:]
    for user in users {
      secrets[user] = Set(locations.filter { _ in random.below(10) == 0 })
    }
    self.secrets = secrets
    self.number = number
    self.decisions = decisions
  }

  /// Whether a user may see the complete value of a location.
  func mayShow(_ path: Path, to user: String) -> Bool {
    !(secrets[user] ?? []).contains { $0.contains(path) || path.contains($0) }
  }

  func decide(
    _ principal: Principal, _ operation: RealtimeAccess.Operation, view: any TreeView
  ) -> RealtimeDecision {
    decisions.withLock { $0 += 1 }
    let user = principal.user?.id ?? ""
    if operation.paths.allSatisfy({ $0.first?.text == "none" }) { return .allowed }
    let isAllowed = operation.paths.allSatisfy { path in
      isRandomlyAllowed(user, path, isWrite: operation.changesData)
        && (operation.changesData || mayShow(path, to: user))
    }
    return isAllowed ? .allowed : .deny(reason: "test")
  }

  /// A random decision that is always the same for this policy, user and path.
  private func isRandomlyAllowed(_ user: String, _ path: Path, isWrite: Bool) -> Bool {
    var hash = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 &+ (isWrite ? 1 : 0)
    for byte in (user + "/" + path.dataPath.description).utf8 {
      hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
    }
    return (hash >> 32) % 5 != 0
  }
}
