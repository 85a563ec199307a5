// What a listen is sent when it starts: nothing if the client is up to date, the ranges that differ if it said what it
// holds, else the value.

import RealtimeModel

/// The start of a listen.
struct ListenAnswer {
  private let listen: Operation.Listen

  init(_ listen: Operation.Listen) { self.listen = listen }

  /// Above this width hashing would hold up everyone else: the client gets the data instead.
  private static let widestHashed = 100_000

  /// What was found out beforehand of a value that is large.
  struct Prepared: Sendable {
    fileprivate enum Answer {
      case nothing
      case all
      case ranges(RealtimePush)
    }

    fileprivate let node: Node
    fileprivate let answer: Answer

    init(_ listen: Operation.Listen, _ node: Node) {
      self.node = node
      var unshared: RealtimePush?
      let push = ListenAnswer(listen).push(for: node, nil, shared: &unshared)
      answer =
        switch push?.body {
        case nil: .nothing
        case .rangeMerge?: push.map { .ranges($0) } ?? .nothing
        default: .all
        }
    }
  }

  /// The push that brings the client up to date; nil if it is.
  ///
  /// - Parameters:
  ///   - prepared: what was found out beforehand.
  ///   - shared: a push of the same value that is still on its way to others; reused, or replaced.
  func push(for node: Node, _ prepared: Prepared?, shared: inout RealtimePush?) -> RealtimePush? {
    if let prepared {
      if prepared.node.isIdentical(to: node) {
        switch prepared.answer {
        case .nothing: return nil
        case .ranges(let push): return push
        case .all: break
        }
      } else if let hash = listen.hash, node.childCount <= ListenAnswer.widestHashed,
        node.matches(hash: hash)
      {
        // It has changed since. Its hash is found from those of its parts; comparing all of them again takes long.
        return nil
      }
    } else if let hash = listen.hash, hash.isEmpty {
      // Whoever holds nothing knows what is empty, without a hash of anything.
      if node.isEmpty { return nil }
    } else if let hash = listen.hash, node.childCount <= ListenAnswer.widestHashed {
      if node.matches(hash: hash) { return nil }
      // Without a range that differs it is a priority that the client left out of them: it is sent all.
      if let compound = listen.compoundHash, let ranges = node.rangeMerges(against: compound), !ranges.isEmpty
      {
        return RealtimePush(listen.path, .rangeMerge(ranges), tag: listen.tag, isFirst: true)
      }
    }
    if let shared, shared.tag == listen.tag, case .set(let value) = shared.body, value.isIdentical(to: node) {
      return shared
    }
    let push = RealtimePush(listen.path, .set(node), tag: listen.tag, isFirst: true)
    shared = push
    return push
  }
}
