// Parses the paths of the Firebase Rules API. A path may begin with the host name of the hosted product.

import Ports

/// The resource of a request to the Firebase Rules API.
struct RulesPath: Equatable {
  /// A resource.
  enum Resource: Equatable {
    case project
    case rulesets
    case ruleset(String)
    case releases
    /// A release by its ID, such as `cloud.firestore` or `cloud.firestore/reports`.
    case release(String)
  }

  var project: String
  var resource: Resource
  /// The custom method at the end, such as `test`; nil for none.
  var verb: String?

  private static let host = "/firebaserules.googleapis.com"

  /// Parses a path. Returns nil for a path of another API.
  init?(_ target: RequestTarget) {
    var target = target
    if target.rawPath.hasPrefix(Self.host) { target.rawPath.removeFirst(Self.host.count) }
    guard target.rawPath.hasPrefix("/v1/projects/"), var segments = target.segments, segments.count >= 3
    else { return nil }
    var verb: String?
    if let last = segments.last, let colon = last.lastIndex(of: ":"), !last.hasSuffix(":") {
      let name = last[last.index(after: colon)...]
      // IDs of projects may contain a colon; custom methods have letters only, the first one in lower case.
      if name.allSatisfy({ $0.isASCII && $0.isLetter }), name.first?.isLowercase == true {
        verb = String(name)
        segments[segments.count - 1] = String(last[..<colon])
      }
    }
    self.verb = verb
    project = segments[2]
    switch (segments.count, segments.count > 3 ? segments[3] : "") {
    case (3, _) where verb != nil: resource = .project
    case (4, "rulesets"): resource = .rulesets
    case (5, "rulesets"): resource = .ruleset(segments[4])
    case (4, "releases"): resource = .releases
    case (5..., "releases"): resource = .release(segments[4...].joined(separator: "/"))
    default: return nil
    }
  }
}

/// The name of a release: the service, and the database that the rules protect.
struct ReleaseID {
  static let firestore = "cloud.firestore"

  /// The ID of the database.
  let database: String

  /// Parses the ID of a release. Returns nil for another service than Cloud Firestore.
  init?(_ id: String) {
    if id == Self.firestore {
      database = "(default)"
      return
    }
    let parts = id.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0] == Self.firestore, !parts[1].isEmpty else { return nil }
    database = String(parts[1])
  }

  /// The ID of the release of a database.
  static func text(ofDatabase database: String) -> String {
    database == "(default)" ? firestore : "\(firestore)/\(database)"
  }
}
