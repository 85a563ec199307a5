// Session listens: the set of a session's listens (subscriptions to a location or query), as its client knows
// them. The engine's set may differ for a short time.
//
// The session needs this set for two reasons. The message that cancels a listen must repeat the client's
// query object, which the engine does not keep. The session also ends a listen itself if a push is too large
// for the client. The engine confirms that end later, and its pushes for the listen must be dropped until
// then.
//
// Invariants
//   1. A listen is active from its confirmation until its end is confirmed, or until it is cancelled. A
//      rejected listen leaves no state.
//   2. After the notification that a listen has ended, the client receives nothing about it, even if the
//      engine has not confirmed the end yet.

import RealtimeEngine
import RealtimeModel

struct SessionListens {
  /// The name of a listen, unique within its connection.
  struct Name: Hashable {
    let path: Path
    /// The client's number of a filtered query; nil for a listen without a filter.
    let tag: Int64?
  }

  /// The effect of a request on the listens.
  enum Request {
    /// Starts a listen.
    case listen(Name, queryText: [UInt8]?)
    /// A listen request whose first value is too large to send. The client gets an error, and the session
    /// ends the listen in the engine.
    case tooLarge(Name)
    case unlisten(Name)
    /// A request of the session itself. It ends a listen in the engine after the client was notified of the
    /// end.
    case end(Name)
    case other
  }

  /// The action of the session after a response of the engine.
  enum Outcome {
    case respond(RealtimeResponse)
    case cancel(Name, queryText: [UInt8]?)
    /// The engine could not end a listen that has already ended for the client.
    case remainsActive
    case nothing
  }

  /// The active listens, each with the query object that the client sent.
  private var active: [Name: [UInt8]?] = [:]
  /// The number of listens that have ended for the client but not yet in the engine.
  private var endingCount = 0

  /// Applies the engine's response to a request.
  mutating func outcome(of request: Request, _ response: RealtimeResponse) -> Outcome {
    switch (request, response) {
    case (.listen(let name, let queryText), .listening): active.updateValue(queryText, forKey: name)
    case (.tooLarge, .listening): return .respond(.failure(.tooBig))
    case (.unlisten(let name), .done): active[name] = nil
    case (.end(let name), .done):
      endingCount -= 1
      // The client has started this listen again in the meantime. The request to the engine has ended the new listen
      // as well, so the client is notified.
      if let queryText = active.removeValue(forKey: name) { return .cancel(name, queryText: queryText) }
      return .nothing
    // The engine reports a failure if the store could not write other changes of the same batch.
    case (.end, _): return .remainsActive
    default: break
    }
    return .respond(response)
  }

  /// Removes a listen.
  ///
  /// - Returns: its query object as the client sent it; nil if there is no such listen.
  @discardableResult
  mutating func remove(_ name: Name) -> [UInt8]?? { active.removeValue(forKey: name) }

  /// Records that the engine is requested to end a listen.
  mutating func willEnd() { endingCount += 1 }

  /// Whether a push may be sent: it belongs to an active listen, or contains a listen's first value.
  func accepts(_ push: RealtimePush) -> Bool {
    endingCount == 0 || push.isFirst || !names(notifiedBy: push).isEmpty
  }

  /// Removes the listens that a push belongs to, and returns them with their query objects.
  mutating func remove(notifiedBy push: RealtimePush) -> [(name: Name, queryText: [UInt8]?)] {
    names(notifiedBy: push).map { name in (name, active.removeValue(forKey: name) ?? nil) }
  }

  /// The active listens that a push notifies: they have its tag, and their location contains a changed path
  /// or lies below one.
  private func names(notifiedBy push: RealtimePush) -> [Name] {
    let common = push.path.dataPath
    let near = active.keys.filter { name in
      name.tag == push.tag && (common.contains(name.path) || name.path.contains(common))
    }
    guard case .merge(let children) = push.body, !near.isEmpty else { return near }
    // There may be many paths and many listens. The paths are sorted once, so that each listen needs only
    // binary searches.
    let paths = children.map { push.path.appending($0.path).dataPath }.sorted()
    return near.filter { name in
      // In sorted order the paths below a location directly follow it.
      if let next = paths.firstSorted(atOrAfter: name.path), name.path.contains(next) { return true }
      // The ancestors of a location precede it, possibly not directly, so each is searched for.
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
