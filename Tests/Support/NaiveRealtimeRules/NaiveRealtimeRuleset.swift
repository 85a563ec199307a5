// A naive evaluator of Realtime Database rules. Random tests compare the server's decisions with it. It decides over
// complete trees, follows the text of the specification, and shares only the parser of expressions with the server.

package import JSON

@testable import SecurityRules

/// The rules of a database.
package struct NaiveRealtimeRuleset {
  private indirect enum Wildcard {
    case none
    case named(String, Location)
  }

  private struct Location {
    /// `.read`, `.write` and `.validate`.
    var rules: [String: RealtimeSyntax] = [:]
    var children: [Units: Location] = [:]
    var wildcard = Wildcard.none
  }

  /// A user and the time of an operation.
  package struct Caller: Sendable {
    /// The value of `auth`.
    package var auth: JSONValue
    /// The time in milliseconds since 1970.
    package var now: Int64

    package init(auth: JSONValue, now: Int64) {
      self.auth = auth
      self.now = now
    }
  }

  private let root: Location

  /// Reads the member `rules` of a file.
  ///
  /// - Throws: the parser's error for an expression that is malformed.
  package init(_ rules: JSONValue) throws { root = try Self.location(rules) }

  private static func location(_ json: JSONValue) throws -> Location {
    var location = Location()
    for member in json.object?.members ?? [] {
      if member.key.hasPrefix(".") {
        var instructions = 0
        let text = member.value.string ?? (member.value == .bool(true) ? "true" : "false")
        guard member.key != ".indexOn" else { continue }
        location.rules[member.key] = try RealtimeParser.parse(text, patternInstructions: &instructions)
      } else if member.key.hasPrefix("$") {
        location.wildcard = .named(member.key, try self.location(member.value))
      } else {
        location.children[Units(member.key.utf16)] = try self.location(member.value)
      }
    }
    return location
  }

  // MARK: Decisions

  /// Whether a location may be read with a query.
  package func allowsRead(
    _ path: [Units], _ query: NaiveQuery, _ caller: Caller, _ tree: PlainTree
  ) -> Bool {
    let context = OperationContext(caller: caller, before: tree, after: tree, query: query.members)
    return ruledLocations(to: Self.dataPath(path)).contains { context.isTrue(".read", $0) }
  }

  /// Whether some values may be written as one operation.
  ///
  /// - Parameters:
  ///   - paths: the written locations.
  ///   - after: the tree after the complete write.
  package func allowsWrite(
    _ paths: [[Units]], _ caller: Caller, from before: PlainTree, to after: PlainTree
  ) -> Bool {
    let context = OperationContext(caller: caller, before: before, after: after, query: [:])
    // A priority that is written to a missing location changes nothing, so no `.validate` rule applies to it.
    let validated = paths.filter { Self.dataPath($0) == $0 || !after.descendant(Self.dataPath($0)).isEmpty }
      .map(Self.dataPath)
    let paths = paths.map(Self.dataPath)
    let isPermitted = paths.allSatisfy { path in
      ruledLocations(to: path).contains { context.isTrue(".write", $0) }
    }
    return isPermitted
      && validated.allSatisfy { path in
        let locations = ruledLocations(to: path)
        guard locations.allSatisfy(context.isValid) else { return false }
        guard let last = locations.last, last.path.count == path.count else { return true }
        return isValidBelow(last, context)
      }
  }

  /// The location of a value whose `.priority` is written; other paths unchanged.
  private static func dataPath(_ path: [Units]) -> [Units] {
    path.last == Units(".priority".utf16) ? Array(path.dropLast()) : path
  }

  /// A location with the rules that apply to it.
  private struct RuledLocation {
    var rules: Location
    var path: [Units]
    var captures: [String: Units]

    /// The rules of a child; nil if it has none.
    func child(_ key: Units) -> RuledLocation? {
      if let rules = rules.children[key] {
        return RuledLocation(rules: rules, path: path + [key], captures: captures)
      }
      guard case .named(let name, let rules) = rules.wildcard else { return nil }
      return RuledLocation(rules: rules, path: path + [key], captures: captures.merging([name: key]) { $1 })
    }
  }

  /// The locations with rules from the root down to a path.
  private func ruledLocations(to path: [Units]) -> [RuledLocation] {
    var locations = [RuledLocation(rules: root, path: [], captures: [:])]
    for key in path {
      guard let next = locations[locations.count - 1].child(key) else { break }
      locations.append(next)
    }
    return locations
  }

  private func isValidBelow(_ location: RuledLocation, _ context: OperationContext) -> Bool {
    context.after.descendant(location.path).children.keys.allSatisfy { key in
      guard let child = location.child(key) else { return true }
      return context.isValid(child) && isValidBelow(child, context)
    }
  }

  /// The trees and variables of one operation.
  private struct OperationContext {
    let caller: Caller
    let before: PlainTree
    let after: PlainTree
    let query: [String: NaiveValue]

    func isTrue(_ rule: String, _ location: RuledLocation) -> Bool {
      guard let syntax = location.rules.rules[rule] else { return false }
      let expression = NaiveExpression(
        auth: NaiveValue(claim: caller.auth), now: Double(caller.now), before: before, after: after,
        location: location.path, captures: location.captures, query: query)
      return (try? expression.bool(syntax)) ?? false
    }

    /// Whether the rule `.validate` of a location is true, or nothing exists there after the write.
    func isValid(_ location: RuledLocation) -> Bool {
      location.rules.rules[".validate"] == nil || after.descendant(location.path).isEmpty
        || isTrue(".validate", location)
    }
  }
}
