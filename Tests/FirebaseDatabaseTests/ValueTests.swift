// Tests the conversion of values between the app and nodes: numbers and booleans inside `Any`, arrays, server
// values, priorities and invalid values.

import FirebaseCore
import FirebaseSharedSwift
import Foundation
import RealtimeModel
import Testing

@testable import FirebaseDatabase

@Suite("Values", .timeLimit(.minutes(10)))
struct ValueTests {
  private func roundTrip(_ value: Any?) throws -> Any {
    ValueWriter.value(try ValueReader.node(value))
  }

  @Test("numbers of every width convert to every number type")
  func numbers() throws {
    let inputs: [Any] = [
      Int8(5), Int16(5), Int32(5), Int64(5), 5, UInt8(5), UInt16(5), UInt32(5), UInt64(5), UInt(5), Float(5),
      5.0,
      NSNumber(value: 5),
    ]
    for input in inputs {
      let value = try roundTrip(input)
      #expect(value as? Int == 5, "\(type(of: input))")
      #expect(value as? Double == 5)
      #expect(value as? Int64 == 5)
      #expect(value as? UInt == 5)
      #expect((value as? NSNumber)?.isBoolean == false)
    }
    #expect(try roundTrip(Int64.max) as? Int64 == Int64.max)
    #expect(try roundTrip(UInt64.max) as? Double == Double(UInt64.max))
    #expect(try roundTrip(1.5) as? Double == 1.5)
  }

  @Test("booleans stay booleans, even inside NSNumber and other wrappers")
  func booleans() throws {
    for input in [true as Any, NSNumber(value: true), Optional(true) as Any] {
      let node = try ValueReader.node(input)
      #expect(node == .leaf(.bool(true)))
      #expect(ValueWriter.value(node) as? Bool == true)
    }
    #expect(try ValueReader.node(1) == .leaf(.int(1)))
    #expect(try ValueReader.node(NSNumber(value: 0)) == .leaf(.int(0)))
    let boxed = try ValueReader.node(["a": true as AnyObject, "b": 1 as AnyObject])
    #expect(boxed.child("a") == .leaf(.bool(true)))
    #expect(boxed.child("b") == .leaf(.int(1)))
  }

  @Test("nil, NSNull and empty optionals are null")
  func nulls() throws {
    let missing: String? = nil
    #expect(try ValueReader.node(nil).isEmpty)
    #expect(try ValueReader.node(NSNull()).isEmpty)
    #expect(try ValueReader.node(missing as Any).isEmpty)
    let node = try ValueReader.node(["a": missing as Any, "b": 1, "c": NSNull(), "d": [String: Any]()])
    #expect(node == .object([("b", .leaf(.int(1)))]))
    #expect(try roundTrip(nil) is NSNull)
  }

  @Test("objects whose keys are array indexes become arrays with NSNull in gaps, and convert back")
  func arrays() throws {
    let seats = try roundTrip(["ann", NSNull(), "cy"])
    #expect(canonicalJSON(seats) == #"["ann",null,"cy"]"#)
    #expect(canonicalJSON(try roundTrip(["2": "cy"])) == #"{"2":"cy"}"#)
    #expect(canonicalJSON(try roundTrip(["1": "x"])) == #"[null,"x"]"#)
    #expect(canonicalJSON(try roundTrip(["1": "a", "3": "b"])) == #"[null,"a",null,"b"]"#)
    #expect(canonicalJSON(try roundTrip(["01": "x"])) == #"{"01":"x"}"#)
    let exported = ValueWriter.exported(try ValueReader.node(["a", "b"]))
    #expect(canonicalJSON(exported) == #"{"0":"a","1":"b"}"#)
  }

  @Test("Foundation containers are converted like Swift's")
  func foundation() throws {
    let dictionary = NSMutableDictionary()
    dictionary["name"] = "tea" as NSString
    dictionary["tags"] = NSArray(array: ["a", 2])
    let node = try ValueReader.node(dictionary)
    #expect(node.child("name") == .leaf(.string("tea")))
    #expect(node.child("tags").childCount == 2)
    #expect(ValueWriter.value(node) as? NSDictionary != nil)
    #expect(ValueWriter.value(node) as? [String: AnyObject] != nil)
    #expect((ValueWriter.value(try ValueReader.node(["x": true])) as? [String: Bool]) == ["x": true])
  }

  @Test("server values and priorities are parsed, and exported unchanged")
  func placeholders() throws {
    #expect(try ValueReader.node(ServerValue.timestamp()) == .leaf(.deferred(.timestamp)))
    #expect(try ValueReader.node(ServerValue.increment(1)) == .leaf(.deferred(.increment(.int(1)))))
    #expect(try ValueReader.node(ServerValue.increment(1.5)) == .leaf(.deferred(.increment(.double(1.5)))))
    #expect(ServerValue.timestamp() as? [String: String] == [".sv": "timestamp"])
    let exported: [String: Any] = [".value": "hi", ".priority": 5]
    let node = try ValueReader.node(exported)
    #expect(node == .leaf(.string("hi"), priority: .number(5)))
    #expect(canonicalJSON(ValueWriter.exported(node)) == #"{".priority":5,".value":"hi"}"#)
    let object = try ValueReader.node(["a": 1], priority: "p")
    #expect(canonicalJSON(ValueWriter.exported(object)) == #"{".priority":"p","a":1}"#)
    #expect(try ValueReader.node(nil, priority: 4).isEmpty)
  }

  @Test(
    "a value that cannot be stored is rejected with its location",
    arguments: [
      (Double.nan as any Sendable, "NaN"), (Double.infinity, "infinite"), (["a.b": 1], "valid key"),
      (["": 1], "valid key"), (["a/b": 1], "valid key"), (["a": ["b": Date()]], "a/b"),
      ([1: "x"], "strings are keys"),
      ([".sv": "timestamp", "x": "y"], "other keys"), ([".sv": "nonsense"], "Unknown server value"),
      ([".value": 1, "x": 2], "other keys"),
      (["a": 1, ".priority": true] as [String: any Sendable], "priority"),
      (String(repeating: "x", count: (10 << 20) + 1), "more than"),
    ])
  func invalidValues(value: any Sendable, reason: String) {
    #expect {
      try ValueReader.node(value)
    } throws: { error in
      (error as? InvalidValue)?.message.contains(reason) == true
    }
  }

  @Test("a value with too many levels is rejected without unbounded recursion")
  func depth() {
    var deep: [String: Any] = ["a": 1]
    for _ in 0..<1_500 { deep = ["a": deep] }
    #expect(throws: InvalidValue.self) { try ValueReader.node(deep) }
  }

  @Test("an update with a path and its ancestor is rejected with an error that contains both")
  func updates() throws {
    let changes = try ValueReader.changes(["a/b": 1, "c": NSNull(), "d/.priority": 3])
    #expect(changes.map(\.0.description) == ["a/b", "c", "d/.priority"])
    #expect {
      try ValueReader.changes(["a": 1, "a/b": 2])
    } throws: { error in
      let message = (error as? InvalidValue)?.message ?? ""
      return message.contains("'/a'") && message.contains("'/a/b'")
    }
    #expect(throws: InvalidValue.self) { try ValueReader.changes(["a.b": 1]) }
    #expect(throws: InvalidValue.self) { try ValueReader.changes([7: 1]) }
    #expect(throws: InvalidValue.self) { try ValueReader.changes(["": 1]) }
  }

  @Test("mutable data of a location and its children share one tree, and setting a value keeps the priority")
  func mutableData() throws {
    let data = MutableData(
      node: .object(
        [("a", .leaf(.int(1))), ("b", .leaf(.int(2), priority: .number(1)))], priority: .string("p")),
      key: "root")
    #expect(data.childrenCount == 2)
    #expect(data.key == "root")
    let child = data.childData(byAppendingPath: "b")
    child.value = 3
    #expect(canonicalJSON(data.value) == #"{"a":1,"b":3}"#)
    #expect(child.priority as? Int == 1)
    data.value = ["c": ["d": true]]
    #expect(data.priority as? String == "p")
    #expect(data.hasChild(atPath: "c/d"))
    #expect(!data.hasChild(atPath: "a"))
    data.priority = 9
    #expect(data.priority as? Int == 9)
    let keys = data.children.compactMap { ($0 as? MutableData)?.key }
    #expect(keys == ["c"])
    data.value = nil
    #expect(data.value is NSNull && data.priority == nil)
  }

  @Test("snapshots iterate in the query's order, and give child snapshots by path")
  func snapshots() throws {
    let node = try ValueReader.node(["a": ["n": 2], "b": ["n": 1], "c": ["m": 1]])
    let snapshot = DataSnapshot(node: node, path: "list", ordering: .child("n"), repository: nil)
    #expect(snapshot.children.compactMap { ($0 as? DataSnapshot)?.key } == ["c", "b", "a"])
    #expect((snapshot.children.allObjects as? [DataSnapshot])?.count == 3)
    #expect((snapshot.children.nextObject() as? DataSnapshot)?.key == "c")
    var count = 0
    for case let child as DataSnapshot in snapshot.children where child.exists() { count += 1 }
    #expect(count == 3)
    #expect(snapshot.childSnapshot(forPath: "a/n").value as? Int == 2)
    #expect(snapshot.hasChild("a/n") && !snapshot.hasChild("z"))
    #expect(snapshot.childrenCount == 3 && snapshot.hasChildren())
    #expect(snapshot.key == "list")
    #expect(!DataSnapshot().exists() && DataSnapshot().value is NSNull && DataSnapshot().key == "")
    #expect(
      DataSnapshot(node: .leaf(.int(1)), path: "x", ordering: .key, repository: nil).description
        == "Snap (x) 1")
  }

  private struct Task: Codable, Equatable {
    var title: String
    var isDone: Bool
    var tags: [String]
    var due: Date?
    @ServerTimestamp var changed: Date?
  }

  @Test("Codable values round-trip, and a nil server timestamp becomes the placeholder")
  func codable() throws {
    let encoder = Database.Encoder()
    encoder.dateEncodingStrategy = .millisecondsSince1970
    let task = Task(
      title: "tea", isDone: true, tags: ["a", "b"], due: Date(timeIntervalSince1970: 5), changed: nil)
    let node = try ValueReader.node(try encoder.encode(task))
    #expect(node.child("changed") == .leaf(.deferred(.timestamp)))
    #expect(node.child("isDone") == .leaf(.bool(true)))
    let stored = node.resolved(existing: .empty, timestamp: 7_000)
    let decoder = Database.Decoder()
    decoder.dateDecodingStrategy = .millisecondsSince1970
    let snapshot = DataSnapshot(node: stored, path: "t", ordering: .priority, repository: nil)
    let read = try snapshot.data(as: Task.self, decoder: decoder)
    #expect(read.changed == Date(timeIntervalSince1970: 7))
    #expect(read.title == "tea" && read.tags == ["a", "b"] && read.due == task.due)
    #expect(try DataSnapshot().data(as: Task?.self) == nil)
    #expect(throws: DecodingError.self) { try DataSnapshot().data(as: Task.self) }
  }
}
