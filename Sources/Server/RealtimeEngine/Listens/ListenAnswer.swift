// What a listen is sent when it starts: nothing if the client is up to date, the ranges that differ if it said what it
// holds, else the value.

import RealtimeModel

/// The start of a listen.
struct ListenAnswer {
  private let listen: RealtimeOperation.Listen

  init(_ listen: RealtimeOperation.Listen) { self.listen = listen }

  /// Above this width hashing would hold up everyone else: the client gets the data instead.
  private static let widestHashed = 100_000
  /// The most bytes that are hashed for one listen in the fan-out stage, and the largest value that is compared there range by
  /// range. Parts whose hash is known cost nothing.
  private static let mostHashed = 1 << 20
  private static let mostCompared = 256 << 10

  fileprivate enum Answer {
    case nothing
    case all
    case ranges(RealtimePush)
  }

  /// What was found out beforehand of a value, or of a window, that is large.
  struct Prepared: Sendable {
    private let node: Node
    private let answer: Answer

    init(_ listen: RealtimeOperation.Listen, _ node: Node) {
      self.node = node
      answer = ListenAnswer(listen).answer(for: node, hashing: .max, comparing: .max)
    }

    /// The answer, if it is about this value.
    fileprivate func answer(for node: Node) -> Answer? { self.node.isIdentical(to: node) ? answer : nil }
  }

  /// The push that brings the client up to date; nil if it is.
  ///
  /// - Parameters:
  ///   - prepared: what was found out beforehand.
  ///   - shared: a push of the same value that is still on its way to others; reused, or replaced.
  func push(for node: Node, _ prepared: Prepared?, shared: inout RealtimePush?) -> RealtimePush? {
    let answer =
      prepared?.answer(for: node)
      ?? self.answer(for: node, hashing: ListenAnswer.mostHashed, comparing: ListenAnswer.mostCompared)
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
  ///   - mostHashed: how many bytes may be hashed; where it takes more the client gets the data.
  ///   - mostCompared: the largest value that may be compared range by range.
  private func answer(for node: Node, hashing mostHashed: Int, comparing mostCompared: Int) -> Answer {
    guard let hash = listen.hash else { return .all }
    // Whoever holds nothing knows what is empty, without a hash of anything.
    if hash.isEmpty { return node.isEmpty ? .nothing : .all }
    guard node.childCount <= ListenAnswer.widestHashed,
      let isHeld = node.matches(hash: hash, hashingAtMost: mostHashed)
    else { return .all }
    if isHeld { return .nothing }
    // Without a range that differs it is a priority that the client left out of them: it is sent all.
    guard node.estimatedSize <= mostCompared, let compound = listen.compoundHash,
      let ranges = node.rangeMerges(against: compound), !ranges.isEmpty
    else { return .all }
    return .ranges(RealtimePush(listen.path, .rangeMerge(ranges), tag: listen.tag, isFirst: true))
  }
}
