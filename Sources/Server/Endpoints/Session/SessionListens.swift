// The listens of a session as its client knows them: what of theirs the engine does not keep, and which of them end because
// no message can hold what they would be told.
//
// Invariants
//   1. A listen stands from its answer to the answer that it has ended, or to its revocation. Nothing is kept of one that
//      was refused.
//   2. Of a listen that the client was told has ended it is told nothing more, though the engine may not have heard yet.

import RealtimeEngine
import RealtimeModel

struct SessionListens {
  /// A listen's name on its connection.
  struct Name: Hashable {
    let path: Path
    /// The client's number of a filtered query.
    let tag: Int64?
  }

  /// What a request means for the listens.
  enum Request {
    /// Begins one.
    case listen(Name, queryText: [UInt8]?)
    /// Would have begun this one, whose value is too large.
    case tooLarge(Name)
    case unlisten(Name)
    /// The session's own, which ends one that the client was told has ended.
    case end(Name)
    case other
  }

  /// What the client is told when the engine has answered.
  enum Outcome {
    case answer(RealtimeResponse)
    case cancel(Name, queryText: [UInt8]?)
    /// A listen goes on that the client was told has ended.
    case goesOn
    case nothing
  }

  /// The listens that stand, with their query objects as they were sent: revoking one must repeat that.
  private var standing: [Name: [UInt8]?] = [:]
  /// How many the client was told have ended of which the engine has not confirmed it.
  private var ending = 0

  /// Takes note of the engine's answer to a request.
  mutating func outcome(of request: Request, _ response: RealtimeResponse) -> Outcome {
    switch (request, response) {
    case (.listen(let name, let queryText), .listening): standing.updateValue(queryText, forKey: name)
    case (.tooLarge, .listening): return .answer(.failure(.tooBig))
    case (.unlisten(let name), .done): standing[name] = nil
    case (.end(let name), .done):
      ending -= 1
      // The client has listened anew before it heard that.
      if let queryText = standing.removeValue(forKey: name) { return .cancel(name, queryText: queryText) }
      return .nothing
    // The store could not keep what went with it.
    case (.end, _): return .goesOn
    default: break
    }
    return .answer(response)
  }

  /// Removes a listen.
  /// - Returns: its query object as it was sent; nil if there is no such listen.
  @discardableResult
  mutating func remove(_ name: Name) -> [UInt8]?? { standing.removeValue(forKey: name) }

  /// Takes note that the engine is asked to end a listen.
  mutating func willEnd() { ending += 1 }

  /// Whether a push is for a listen that stands, or begins one.
  func wants(_ push: RealtimePush) -> Bool { ending == 0 || push.isFirst || !names(toldBy: push).isEmpty }

  /// Removes the listens that a push is for.
  mutating func remove(toldBy push: RealtimePush) -> [(name: Name, queryText: [UInt8]?)] {
    names(toldBy: push).map { name in (name, standing.removeValue(forKey: name) ?? nil) }
  }

  /// The listens that show what a push changes.
  private func names(toldBy push: RealtimePush) -> [Name] {
    let common = push.path.dataPath
    let near = standing.keys.filter { name in
      name.tag == push.tag && (common.contains(name.path) || name.path.contains(common))
    }
    guard case .merge(let children) = push.body, !near.isEmpty else { return near }
    // In order once for all: there may be many of both.
    let places = children.map { push.path.appending($0.path).dataPath }.sorted()
    return near.filter { name in
      // Behind a location in order comes what is below it.
      if let next = places.firstSorted(atOrBehind: name.path), name.path.contains(next) { return true }
      // What is above it comes before, and may lie far off.
      return (0..<name.path.count).contains { count in
        guard count >= common.count else { return false }
        let ancestor = Path(name.path.keys.prefix(count))
        return places.firstSorted(atOrBehind: ancestor) == ancestor
      }
    }
  }
}

extension [Path] {
  /// The first path of a sorted list that is no less than another.
  fileprivate func firstSorted(atOrBehind path: Path) -> Path? {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < path { low = middle + 1 } else { high = middle }
    }
    return low < count ? self[low] : nil
  }
}
