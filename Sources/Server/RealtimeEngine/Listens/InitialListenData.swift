// Selects the first push of a listen.
//
// A client that is up to date gets none. A client that sent a compound hash gets the ranges that differ, and any other
// client gets the value.

import RealtimeModel

/// The first push of a listen.
struct InitialListenData {
  private let listen: RealtimeOperation.Listen

  init(_ listen: RealtimeOperation.Listen) { self.listen = listen }

  /// The number of children above which the client gets the value instead of a hash comparison, which would
  /// block others.
  private static let maximumHashedChildren = 100_000
  /// Maximum bytes hashed for one listen in the fan-out stage, and the largest value compared there range by
  /// range. Parts with a known hash cost nothing.
  private static let maximumHashedBytes = 1 << 20
  private static let maximumComparedBytes = 256 << 10

  fileprivate enum Answer {
    case nothing
    case all
    case ranges(RealtimePush)
  }

  /// A result that was computed in the background for a large value or window.
  struct Prepared: Sendable {
    private let node: Node
    private let answer: Answer

    init(_ listen: RealtimeOperation.Listen, _ node: Node) {
      self.node = node
      answer = InitialListenData(listen).answer(for: node, hashing: .max, comparing: .max)
    }

    /// The result, if it is for this value.
    fileprivate func answer(for node: Node) -> Answer? { self.node.isIdentical(to: node) ? answer : nil }
  }

  /// The push that brings the client up to date; nil if it is.
  ///
  /// - Parameters:
  ///   - prepared: a result computed in the background.
  ///   - shared: a pending push of the same value; reused, or replaced.
  func push(for node: Node, _ prepared: Prepared?, shared: inout RealtimePush?) -> RealtimePush? {
    let answer =
      prepared?.answer(for: node)
      ?? self.answer(
        for: node, hashing: InitialListenData.maximumHashedBytes,
        comparing: InitialListenData.maximumComparedBytes)
    switch answer {
    case .nothing: return nil
    case .ranges(let push): return push
    case .all: break
    }
    if let shared, shared.tag == listen.tag, case .set(let value) = shared.body, value.isIdentical(to: node) {
      return shared
    }
    let push = RealtimePush(listen.path, .set(node), tag: listen.tag, isFirst: true)
    shared = push
    return push
  }

  /// - Parameters:
  ///   - maximumHashedBytes: the bytes above which the client gets the value.
  ///   - maximumComparedBytes: the largest value to compare range by range.
  private func answer(for node: Node, hashing maximumHashedBytes: Int, comparing maximumComparedBytes: Int)
    -> Answer
  {
    guard let hash = listen.hash else { return .all }
    // A client without data is up to date if the value is empty: no hash is needed.
    if hash.isEmpty { return node.isEmpty ? .nothing : .all }
    guard node.childCount <= InitialListenData.maximumHashedChildren,
      let isHeld = node.matches(hash: hash, hashingAtMost: maximumHashedBytes)
    else { return .all }
    if isHeld { return .nothing }
    // If no range differs, the client's hash lacked a priority: it gets the value.
    guard node.estimatedSize <= maximumComparedBytes, let compound = listen.compoundHash,
      let ranges = node.rangeMerges(against: compound), !ranges.isEmpty
    else { return .all }
    return .ranges(RealtimePush(listen.path, .rangeMerge(ranges), tag: listen.tag, isFirst: true))
  }
}
