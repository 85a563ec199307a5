// Fuzz target: tokens, request bodies and stored accounts. A parsed token has exactly one text, a converted body converts
// to itself, and an account that can be read is written and read again as the same account.

import Identity
import JSON

@testable import IdentityEndpoints

func fuzzIdentity(_ input: UnsafeRawBufferPointer) throws {
  let text = String(decoding: input, as: UTF8.self)
  if let token = JSONWebToken(text) {
    let signature = Base64.encode(token.signature, .urlSafe, padded: false)
    let written = token.signedBytes + Array(".".utf8) + Array(signature.utf8)
    try require(written == Array(text.utf8), "a token has two texts")
    _ = IDToken(token.claims)
  }
  guard let object = (try? JSONValue(json: input, limits: JSONLimits(depth: 64)))?.object else { return }
  for fields in [
    RequestFields.batchCreate, RequestFields.update, RequestFields.multiFactorEnrolment,
    RequestFields.configuration,
  ] {
    guard let converted = try? FieldKind.convert(object, fields) else { continue }
    let again = try require(try? FieldKind.convert(converted, fields), "a converted body is rejected")
    try require(again == converted, "a converted body changes")
  }
  if let account = try? Account(storedForm: object) {
    let again = try require(try? Account(storedForm: account.storedForm), "a stored account is not read")
    try require(again == account, "a stored account is another account")
  }
  for pair in FormText.decode(text) ?? [] {
    let written = FormText.encode([pair])
    let again = try require(FormText.decode(written)?.first, "written form text is not read")
    try require(again == pair, "written form text is another text")
  }
}
