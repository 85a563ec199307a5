// Selects the first push of a listen, from the hash that the client sent of its cached value.
//
// A client whose hash matches gets no push. A client that sent a compound hash (a hash for each range of the
// value) gets the ranges that differ. Any other client gets the complete value.

import RealtimeModel

/// The first push of a listen.
struct InitialListenData {
  private let listen: RealtimeOperation.Listen

  init(_ listen: RealtimeOperation.Listen) { self.listen = listen }

  /// The number of children above which the client gets the value without a hash comparison, because hashing
  /// that many children would delay other clients.
  private static let maximumHashedChildren = 100_000
  /// Maximum bytes hashed for one listen in the fan-out stage. Parts of the value whose hash is cached do not
  /// count. `maximumComparedBytes` is the size of the largest value that the stage compares range by range.
  private static let maximumHashedBytes = 1 << 20
  private static let maximumComparedBytes = 256 << 10

  fileprivate enum Selection {
    case nothing
    case all
    case ranges(RealtimePush)
  }

  /// A result that was computed in the background for a large value or window.
  struct Prepared: Sendable {
    private let node: Node
    private let selection: Selection

    init(_ listen: RealtimeOperation.Listen, _ node: Node) {
      self.node = node
      selection = InitialListenData(listen).selection(for: node, hashing: .max, comparing: .max)
    }

    /// The result; nil if it was computed for another value.
    fileprivate func selection(for node: Node) -> Selection? {
      self.node.isIdentical(to: node) ? selection : nil
    }
  }

  /// The push that brings the client up to date; nil if the client is up to date.
  ///
  /// - Parameters:
  ///   - prepared: the result that was computed in the background, if any.
  ///   - shared: the last push of the location's value. It is reused if the value is the same, otherwise
  ///     replaced.
  func push(for node: Node, _ prepared: Prepared?, shared: inout RealtimePush?) -> RealtimePush? {
    let selection =
      prepared?.selection(for: node)
      ?? self.selection(
        for: node, hashing: InitialListenData.maximumHashedBytes,
        comparing: InitialListenData.maximumComparedBytes)
    switch selection {
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
  ///   - maximumHashedBytes: the number of bytes to hash above which the client gets the value.
  ///   - maximumComparedBytes: the size of the largest value that is compared range by range.
  private func selection(for node: Node, hashing maximumHashedBytes: Int, comparing maximumComparedBytes: Int)
    -> Selection
  {
    guard let hash = listen.hash else { return .all }
    // An empty hash means that the client has no data. It is up to date if the value is empty.
    if hash.isEmpty { return node.isEmpty ? .nothing : .all }
    guard node.childCount <= InitialListenData.maximumHashedChildren,
      let hashMatches = node.matches(hash: hash, hashingAtMost: maximumHashedBytes)
    else { return .all }
    if hashMatches { return .nothing }
    // The hashes of the complete values differ. If no range differs, only a priority that the compound hash does not
    // cover can differ, and the client gets the complete value.
    guard node.estimatedSize <= maximumComparedBytes, let compound = listen.compoundHash,
      let ranges = node.rangeMerges(against: compound), !ranges.isEmpty
    else { return .all }
    return .ranges(RealtimePush(listen.path, .rangeMerge(ranges), tag: listen.tag, isFirst: true))
  }
}
