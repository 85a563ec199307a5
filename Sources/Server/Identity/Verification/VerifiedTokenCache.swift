// Keeps the results of recent verifications, because verifying a signature takes twenty times as long as a lookup.
//
// The cache has two generations. New tokens are added to the young generation. When it is full, it replaces the old
// generation. A token that is found in the old generation is added to the young one again.
//
// Invariant: at most twice `maximumBytes` of tokens are kept. A look-up compares all bytes of a token, never only a
// hash.

import Locking

/// A bounded cache of verified tokens.
final class VerifiedTokenCache: Sendable {
  private struct State {
    var young: [String: VerifiedToken] = [:]
    var old: [String: VerifiedToken] = [:]
    var youngBytes = 0
    var clearCount = 0

    mutating func insert(_ token: VerifiedToken, for text: String) {
      if youngBytes + text.utf8.count > VerifiedTokenCache.maximumBytes {
        old = young
        young = [:]
        youngBytes = 0
      }
      if young.updateValue(token, forKey: text) == nil { youngBytes += text.utf8.count }
      precondition(
        youngBytes <= VerifiedTokenCache.maximumBytes, "invariant: a generation of tokens is within its limit"
      )
    }
  }

  /// Maximum bytes of the tokens of a generation: about 8,000 tokens of 1 KB.
  private static let maximumBytes = 8 << 20

  private let state = Guarded(State())

  /// The token with a text; nil if it is not cached.
  subscript(text: String) -> VerifiedToken? {
    state.withLock { state in
      if let token = state.young[text] { return token }
      guard let token = state.old[text] else { return nil }
      state.insert(token, for: text)
      return token
    }
  }

  /// The number of times that the cache was cleared.
  var clearCount: Int { state.withLock { $0.clearCount } }

  /// Adds a token, unless the cache was cleared since its verification began.
  /// - Parameter clearCount: the value of ``clearCount`` before the verification.
  func insert(_ token: VerifiedToken, for text: String, _ clearCount: Int) {
    state.withLock { state in
      guard state.clearCount == clearCount else { return }
      state.insert(token, for: text)
    }
  }

  /// Clears the cache, because keys were revoked.
  func removeAll() {
    state.withLock { state in
      state.young = [:]
      state.old = [:]
      state.youngBytes = 0
      state.clearCount += 1
    }
  }
}
