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
    case nothing
  }

  /// A listen that stands.
  struct Listen {
    /// Its query object as it was sent: revoking it must repeat that.
    var queryText: [UInt8]?
  }

  private var standing: [Name: Listen] = [:]
  /// How many the client was told have ended of which the engine has not confirmed it.
  private var ending = 0

  /// Takes note of the engine's answer to a request.
  mutating func outcome(of request: Request, _ response: RealtimeResponse) -> Outcome {
    switch (request, response) {
    case (.listen(let name, let queryText), .listening): standing[name] = Listen(queryText: queryText)
    case (.tooLarge, .listening): return .answer(.failure(.tooBig))
    case (.unlisten(let name), .done): standing[name] = nil
    case (.end(let name), _):
      ending -= 1
      // The client has listened anew before it heard that.
      if let listen = standing.removeValue(forKey: name) { return .cancel(name, queryText: listen.queryText) }
      return .nothing
    default: break
    }
    return .answer(response)
  }

  @discardableResult
  mutating func remove(_ name: Name) -> Listen? { standing.removeValue(forKey: name) }

  /// Takes note that the engine is asked to end a listen.
  mutating func willEnd() { ending += 1 }

  /// Whether a push is for a listen that stands, or begins one.
  func wants(_ push: RealtimePush) -> Bool {
    ending == 0 || push.isFirst || standing.keys.contains { push.tells($0) }
  }

  /// Removes the listens that a push is for.
  mutating func remove(toldBy push: RealtimePush) -> [(name: Name, queryText: [UInt8]?)] {
    let told = standing.filter { push.tells($0.key) }
    for name in told.keys { standing[name] = nil }
    return told.map { ($0.key, $0.value.queryText) }
  }
}

extension RealtimePush {
  /// Whether the push changes what a listen shows.
  fileprivate func tells(_ name: SessionListens.Name) -> Bool {
    guard tag == name.tag else { return false }
    func isNear(_ place: Path) -> Bool {
      let place = place.dataPath
      return place.contains(name.path) || name.path.contains(place)
    }
    guard case .merge(let children) = body else { return isNear(path) }
    return children.contains { isNear(path.appending($0.path)) }
  }
}
