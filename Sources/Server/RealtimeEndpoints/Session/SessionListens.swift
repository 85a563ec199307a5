// Tracks the listens of a session as its client knows them.
//
// The engine keeps no query objects, which a cancellation must repeat. A listen may also end here because a
// message is too large for the client, before the engine confirms it.
//
// Invariants
//   1. A listen is active from its confirmation until its end is confirmed, or until it is cancelled. A
//      rejected listen leaves no state.
//   2. A client receives nothing about a listen after the notification that it has ended, even before the
//      engine's confirmation.

import RealtimeEngine
import RealtimeModel

struct SessionListens {
  /// The name of a listen on its connection.
  struct Name: Hashable {
    let path: Path
    /// The client's number of a filtered query.
    let tag: Int64?
  }

  /// The effect of a request on the listens.
  enum Request {
    /// Starts a listen.
    case listen(Name, queryText: [UInt8]?)
    /// Would have started this listen, whose value is too large.
    case tooLarge(Name)
    case unlisten(Name)
    /// The session's own request, which ends a listen that the client knows has ended.
    case end(Name)
    case other
  }

  /// The notification for the client after a response of the engine.
  enum Outcome {
    case answer(RealtimeResponse)
    case cancel(Name, queryText: [UInt8]?)
    /// A listen remains active that the client knows has ended.
    case remainsActive
    case nothing
  }

  /// The active listens with their query objects as the client sent them: a cancellation must repeat these.
  private var active: [Name: [UInt8]?] = [:]
  /// The number of listens that ended for the client and not yet in the engine.
  private var endingCount = 0

  /// Applies the engine's response to a request.
  mutating func outcome(of request: Request, _ response: RealtimeResponse) -> Outcome {
    switch (request, response) {
    case (.listen(let name, let queryText), .listening): active.updateValue(queryText, forKey: name)
    case (.tooLarge, .listening): return .answer(.failure(.tooBig))
    case (.unlisten(let name), .done): active[name] = nil
    case (.end(let name), .done):
      endingCount -= 1
      // The client has started the listen again before it knew of its end.
      if let queryText = active.removeValue(forKey: name) { return .cancel(name, queryText: queryText) }
      return .nothing
    // The store could not write the changes of the same batch.
    case (.end, _): return .remainsActive
    default: break
    }
    return .answer(response)
  }

  /// Removes a listen.
  ///
  /// - Returns: its query object as the client sent it; nil if there is no such listen.
  @discardableResult
  mutating func remove(_ name: Name) -> [UInt8]?? { active.removeValue(forKey: name) }

  /// Records that the engine is requested to end a listen.
  mutating func willEnd() { endingCount += 1 }

  /// Whether a push belongs to an active listen, or starts one.
  func accepts(_ push: RealtimePush) -> Bool {
    endingCount == 0 || push.isFirst || !names(notifiedBy: push).isEmpty
  }

  /// Removes the listens that a push belongs to.
  mutating func remove(notifiedBy push: RealtimePush) -> [(name: Name, queryText: [UInt8]?)] {
    names(notifiedBy: push).map { name in (name, active.removeValue(forKey: name) ?? nil) }
  }

  /// The listens that show the change of a push.
  private func names(notifiedBy push: RealtimePush) -> [Name] {
    let common = push.path.dataPath
    let near = active.keys.filter { name in
      name.tag == push.tag && (common.contains(name.path) || name.path.contains(common))
    }
    guard case .merge(let children) = push.body, !near.isEmpty else { return near }
    // Both may be many: sorting once keeps each check logarithmic.
    let paths = children.map { push.path.appending($0.path).dataPath }.sorted()
    return near.filter { name in
      // In sorted order the paths below a location follow it.
      if let next = paths.firstSorted(atOrAfter: name.path), name.path.contains(next) { return true }
      // Its ancestors come before it, possibly far away.
      return (0..<name.path.count).contains { count in
        guard count >= common.count else { return false }
        let ancestor = Path(name.path.keys.prefix(count))
        return paths.firstSorted(atOrAfter: ancestor) == ancestor
      }
    }
  }
}

extension [Path] {
  /// The first path of a sorted list that is not less than `path`.
  fileprivate func firstSorted(atOrAfter path: Path) -> Path? {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < path { low = middle + 1 } else { high = middle }
    }
    return low < count ? self[low] : nil
  }
}
