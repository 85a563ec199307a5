// Fuzz target: queries of the Realtime Database, from the wire and from REST. A decoded query is written again
// as the same query, and selects the children of its definition.

import NIOHTTP1
import RealtimeModel
import RealtimeWire

@testable import Ports
@testable import RealtimeEndpoints

/// The first byte selects the request method; the rest is its parameters, or a query in wire format.
func fuzzRealtimeQuery(_ input: UnsafeRawBufferPointer) throws {
  guard let first = input.first else { return }
  let rest = Array(input.dropFirst())
  let message =
    Array(#"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/a","h":"","q":"#.utf8) + rest + Array("}}}".utf8)
  if case .request(let request)? = message.withUnsafeBytes({ try? ClientMessage(json: $0) }),
    case .listen(let listen) = request.action
  {
    try check(listen.query)
  }

  let methods: [HTTPMethod] = [.GET, .PUT, .POST, .PATCH, .DELETE]
  let uri = "/a/b.json?" + String(decoding: rest, as: UTF8.self)
  guard let target = try? RequestTarget(uri) else { return }
  for isShallow in [false, true] {
    if let query = try? RESTQuery.query(target, isShallow: isShallow) { try check(query) }
  }
  var headers = HTTPHeaders()
  // Other header names cannot occur, because the HTTP codec rejects them.
  if let header = target["header"], ResponseHeaderFilter.isSendable(header, "") {
    headers.add(name: header, value: target["value"] ?? "")
  }
  let head = HTTPRequestHead(
    version: .http1_1, method: methods[Int(first) % methods.count], uri: uri, headers: headers)
  let endpoint = FuzzedEndpoint.realtime
  if let request = try? RESTRequest(head, target, endpoint) {
    let path = request.path
    let again = try? Path(validating: path.description, allowingPriority: true)
    try require(again == path, "the path \(path) is not read again")
  }
  let path = try? RESTRequest(head, RequestTarget(String(decoding: rest, as: UTF8.self)), endpoint).path
  if let path {
    let again = try? Path(validating: path.description, allowingPriority: true)
    try require(again == path, "the path \(path) is not read again")
  }
}

private func check(_ query: QuerySpec) throws {
  let again = try require(try? QuerySpec(wireFields: query.wireFields), "a query's wire form is rejected")
  try require(again == query, "a query's wire form is another query")
  if query.showsAll { return }
  for location in locations {
    var expected = location.sortedChildren(by: query.ordering)
      .filter { query.contains(SortKey(of: $0.key, $0.node, in: query.ordering)) }.map(\.key)
    switch query.limit {
    case .first(let count): expected = Array(expected.prefix(count))
    case .last(let count): expected = Array(expected.suffix(count))
    case nil: break
    }
    let window = location.window(query)
    var found: Set<ChildKey> = []
    window.forEachChild { key, _ in found.insert(key).inserted }
    try require(found == Set(expected), "the window of \(query.wireFields) is \(found), not \(expected)")
  }
}

/// Children that differ in each order.
private let locations: [Node] = [
  #"{"a":1,"b":{"a":2,".priority":1},"c":"x","10":true,"9":null,"2":{"a":{"b":"y"}},"-1":1.5,"é":{".value":3,".priority":"p"}}"#,
  #"[0,1,2,3,"4",{"a":5},null,false]"#, "{}", "7",
].map { (try? Node(json: Array($0.utf8), .read)) ?? .empty }
