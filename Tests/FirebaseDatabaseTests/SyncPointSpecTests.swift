// Runs the public test vectors of the sync tree, which is the client's cache of listens and pending writes.
// The input of a vector is listens, writes, pushes and acknowledgements. Its output is events. Each vector
// runs at the root and below another path.

import Foundation
import JSON
import RealtimeModel
import Testing

@testable import FirebaseDatabase

@Suite("Sync tree vectors", .timeLimit(.minutes(10)))
struct SyncPointSpecTests {
  @Test(
    "every sync point vector produces its events, at the root and below it",
    .enabled(
      if: ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"] != nil, "HEARTH_CONFORMANCE is not set"))
  func vectors() throws {
    guard let folder = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"] else {
      print("sync point vectors: skipped, HEARTH_CONFORMANCE is not set")
      return
    }
    let files = try #require(
      FileManager.default.enumerator(atPath: folder)?.allObjects as? [String],
      "HEARTH_CONFORMANCE names no folder: \(folder)")
    var run = 0
    var passed = 0
    for file in files.sorted() where file.hasSuffix(".json") {
      guard let data = FileManager.default.contents(atPath: folder + "/" + file),
        let cases = try SyncPointCase.cases(in: data)
      else { continue }
      for vector in cases {
        for base in ["", "foo/bar/baz"] {
          run += 1
          var runner = SyncPointRunner(base: Path(base))
          let problems = runner.run(vector)
          if problems.isEmpty { passed += 1 }
          #expect(
            problems.isEmpty, "\(file): \(vector.name) at /\(base): \(problems.joined(separator: "; "))")
        }
      }
    }
    print("sync point vectors: run \(run), passed \(passed), skipped 0")
    #expect(run > 0, "no file in \(folder) holds sync point vectors")
  }
}

/// One test vector.
struct SyncPointCase {
  let name: String
  let steps: [JSONObject]

  /// Parses the vectors of a file; nil if the file has another format.
  static func cases(in data: Data) throws -> [SyncPointCase]? {
    guard let list = try? JSONValue(json: Array(data)).array else { return nil }
    var cases: [SyncPointCase] = []
    for element in list {
      guard let name = element["name"]?.string, let steps = element["steps"]?.array else { return nil }
      guard steps.allSatisfy({ $0["type"]?.string != nil && $0["events"]?.array != nil }) else { return nil }
      cases.append(SyncPointCase(name: name, steps: steps.compactMap(\.object)))
    }
    return cases.isEmpty ? nil : cases
  }
}

/// Runs the steps of one vector on a new tree.
struct SyncPointRunner {
  let base: Path
  let tree = SyncTree()
  var nextRegistration: UInt = 1
  var nextWrite = 0
  var listens: Set<Listen> = []
  var registrations: [Int64: ObserverRegistration] = [:]

  init(base: Path) {
    self.base = base
  }

  /// Runs a vector and returns the differences from its expected events.
  mutating func run(_ vector: SyncPointCase) -> [String] {
    var problems: [String] = []
    for (index, step) in vector.steps.enumerated() {
      let type = step["type"]?.string ?? ""
      do {
        guard let events = try perform(type, step) else { continue }
        let isExact = type == "listen" || type == "unlisten"
        let expected = try (step["events"]?.array ?? []).map { try ExpectedEvent($0, base: base) }
        let actual = events.map(ExpectedEvent.init)
        if let difference = compare(expected, actual, isExact: isExact) {
          problems.append("step \(index) (\(type)): \(difference)")
        }
        problems += checkListens().map { "step \(index) (\(type)): \($0)" }
      } catch {
        problems.append("step \(index) (\(type)): \(error)")
      }
    }
    return problems
  }

  private mutating func perform(_ type: String, _ step: JSONObject) throws -> [DataEvent]? {
    let path = base.appending(Path(step["path"]?.string ?? ""))
    let tag = step["tag"]?.int.map(Int.init)
    switch type {
    case "listen":
      let id = step["callbackId"]?.int
      let registration = id.flatMap { registrations[$0] } ?? makeRegistration()
      if let id { registrations[id] = registration }
      return tree.add(registration, at: path, query: try query(step["params"]))
    case "unlisten":
      guard let id = step["callbackId"]?.int, let registration = registrations[id] else {
        throw VectorError("no listen with this callbackId")
      }
      return tree.remove(registration, at: path, query: try query(step["params"]))
    case "serverUpdate":
      return tree.applyServerOverwrite(at: path, parseNode(step["data"]), tag: tag)
    case "serverMerge":
      return tree.applyServerMerge(at: path, parseMerge(step["data"]), tag: tag)
    case "set":
      defer { nextWrite += 1 }
      return tree.applyUserOverwrite(
        at: path, parseNode(step["data"]), id: nextWrite, isVisible: step["visible"]?.bool ?? true)
    case "update":
      defer { nextWrite += 1 }
      return tree.applyUserMerge(at: path, parseMerge(step["data"]), id: nextWrite)
    case "ackUserWrite":
      let id = Int(step["writeId"]?.int ?? -1)
      return tree.acknowledgeWrite(id, isRevert: step["revert"]?.bool ?? false)
    case "suppressWarning": return nil
    default: throw VectorError("unknown step")
    }
  }

  private mutating func makeRegistration() -> ObserverRegistration {
    defer { nextRegistration += 1 }
    let everything: EventInterest = [.childAdded, .childRemoved, .childChanged, .childMoved, .value]
    return ObserverRegistration(id: nextRegistration, interest: everything)
  }

  /// Returns an error for a listen that starts twice, or that stops without a start.
  private mutating func checkListens() -> [String] {
    tree.takeActions().compactMap { action in
      switch action {
      case .start(let listen): listens.insert(listen).inserted ? nil : "listen started twice: \(listen)"
      case .stop(let listen):
        listens.remove(listen) != nil ? nil : "listen stopped without a start: \(listen)"
      }
    }
  }

  private func query(_ params: JSONValue?) throws -> QuerySpec {
    var query = QuerySpec.default
    guard let params = params?.object else { return query }
    for member in params.members {
      let value = member.value
      switch member.key {
      case "tag": break
      case "limitToFirst": query.limit = .first(Int(value.int ?? 0))
      case "limitToLast": query.limit = .last(Int(value.int ?? 0))
      case "startAt": query.start = bound(value)
      case "endAt": query.end = bound(value)
      case "equalTo":
        query.start = bound(value)
        query.end = bound(value)
      case "orderBy": query.ordering = .child(Path(value.string ?? ""))
      case "orderByKey": query.ordering = .key
      case "orderByPriority": query.ordering = .priority
      default: throw VectorError("unknown parameter \(member.key)")
      }
    }
    return query
  }

  private func bound(_ value: JSONValue) -> QuerySpec.Bound {
    QuerySpec.Bound(
      parseNode(value["index"]).leafValue, key: value["name"]?.string.map { ChildKey(bound: $0) })
  }

  private func compare(_ expected: [ExpectedEvent], _ actual: [ExpectedEvent], isExact: Bool) -> String? {
    guard expected.count == actual.count else { return "expected \(expected), got \(actual)" }
    if isExact { return expected == actual ? nil : "expected \(expected), got \(actual)" }
    // The events of one location are adjacent. Within a location, the order of the listeners is undefined.
    var rest = actual[...]
    var index = 0
    while index < expected.count {
      let group = expected[index...].prefix { $0.path == expected[index].path }
      let actualGroup = rest.prefix(group.count)
      guard actualGroup.allSatisfy({ $0.path == expected[index].path }),
        Set(actualGroup.map(\.description)) == Set(group.map(\.description)),
        actualGroup.map(\.description).sorted() == group.map(\.description).sorted()
      else { return "expected \(expected), got \(actual)" }
      rest = rest.dropFirst(group.count)
      index += group.count
    }
    return nil
  }
}

struct VectorError: Error {
  let reason: String
  init(_ reason: String) { self.reason = reason }
}

/// An event in the format of the vectors.
struct ExpectedEvent: Equatable, CustomStringConvertible {
  let type: String
  let path: Path
  let name: String?
  let previous: String?
  let data: Node

  init(_ json: JSONValue, base: Path) throws {
    type = json["type"]?.string ?? ""
    path = base.appending(Path(json["path"]?.string ?? ""))
    name = type == "value" ? nil : json["name"]?.string
    previous = type == "value" || type == "child_removed" ? nil : json["prevName"]?.string
    data = parseNode(json["data"])
  }

  init(_ event: DataEvent) {
    path = event.path
    switch event.content {
    case .value(let node):
      (type, name, previous, data) = ("value", nil, nil, node)
    case .child(let kind, let key, let node, let previous):
      let names: [Int: String] = [
        EventInterest.childAdded.rawValue: "child_added",
        EventInterest.childRemoved.rawValue: "child_removed",
        EventInterest.childChanged.rawValue: "child_changed",
        EventInterest.childMoved.rawValue: "child_moved",
      ]
      type = names[kind.rawValue] ?? ""
      name = key.text
      self.previous = previous?.text
      data = node
    case .cancelled(let error):
      (type, name, previous, data) = ("cancelled \(error)", nil, nil, .empty)
    }
  }

  var description: String {
    "\(type) \(path.absolute) \(name ?? "-") after \(previous ?? "-") \(data.hash)"
  }
}

/// Parses a value in the vectors' export format.
func parseNode(_ json: JSONValue?) -> Node {
  switch json {
  case nil, .null?: return .empty
  case .bool(let value)?: return .leaf(.bool(value))
  case .int(let value)?: return .leaf(.int(value))
  case .double(let value)?: return .leaf(.double(value))
  case .string(let value)?: return .leaf(.string(value))
  case .array(let values)?:
    return .object(values.enumerated().map { (ChildKey("\($0.offset)"), parseNode($0.element)) })
  case .object(let object)?:
    let priority = object[".priority"].flatMap { parseNode($0).leafValue }.flatMap { try? Priority($0) }
    if let value = object[".value"] { return parseNode(value).with(priority: priority) }
    return .object(
      object.members.filter { !$0.key.hasPrefix(".") }.map { (ChildKey($0.key), parseNode($0.value)) },
      priority: priority)
  }
}

func parseMerge(_ json: JSONValue?) -> [(Path, Node)] {
  json?.object?.members.map { (Path($0.key), parseNode($0.value)) } ?? []
}
