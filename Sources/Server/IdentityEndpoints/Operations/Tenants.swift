// Manages the tenants of a project.

import Identity
import JSON
import Ports

extension IdentityCall {
  private static let defaultTenantPage = 20
  private static let maximumTenantPage = 1000

  private func json(_ tenant: TenantSettings) -> JSONObject {
    var object: JSONObject = ["name": .string("projects/\(projectID)/tenants/\(tenant.id)")]
    object.merge(tenant.json)
    return object
  }

  private func storedTenant(_ reader: IdentityReader) throws -> TenantSettings {
    let id = resource ?? ""
    if let tenant = try reader.tenantSettings(id) { return tenant }
    throw IdentityError(404, "NOT_FOUND", "TENANT_NOT_FOUND", reason: "notFound")
  }

  /// `tenants` (POST).
  func createTenant() async throws -> JSONObject {
    let name = (body.text("displayName") ?? "tenant").filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
    var tenant = TenantSettings(id: "\(name.prefix(20))-\(RandomText.identifier(5).lowercased())")
    tenant.apply(body.object)
    let created = tenant
    return try await write { transaction in
      guard try transaction.reader.tenantSettings(created.id) == nil else {
        throw IdentityError.unavailable("The random ID of the tenant is taken. Try again.")
      }
      try transaction.put(created)
      return self.json(created)
    }
  }

  /// `tenants` (GET).
  func listTenants() async throws -> JSONObject {
    let requested = target["pageSize"].flatMap { Int($0) } ?? Self.defaultTenantPage
    let limit = min(max(requested, 1), Self.maximumTenantPage)
    let token = target["pageToken"].flatMap { $0.isEmpty ? nil : $0 }
    let tenants = try await read { try $0.tenants(after: token, limit: limit) }
    var response: JSONObject = ["tenants": .array(tenants.map { .object(json($0)) })]
    if tenants.count == limit, let last = tenants.last { response["nextPageToken"] = .string(last.id) }
    return response
  }

  /// `tenants/{tenant}` (GET).
  func getTenant() async throws -> JSONObject {
    let id = resource ?? ""
    if isEmulator {
      return try await write { transaction in
        if let tenant = try transaction.reader.tenantSettings(id) { return self.json(tenant) }
        let tenant = TenantSettings.allowingAllMethods(id)
        try transaction.put(tenant)
        return self.json(tenant)
      }
    }
    return try await read { self.json(try self.storedTenant($0)) }
  }

  /// `tenants/{tenant}` (PATCH). Without a mask, absent members are set to their defaults.
  func updateTenant() async throws -> JSONObject {
    let mask = target["updateMask"].flatMap { $0.isEmpty ? nil : $0 }
    return try await write { transaction in
      let stored = try self.storedTenant(transaction.reader)
      var tenant = TenantSettings(id: stored.id)
      if let mask {
        tenant = stored
        var values = JSONObject()
        for path in mask.split(separator: ",") {
          let name = String(path.split(separator: ".").first ?? "")
          values[name] = self.body.object[name] ?? TenantSettings(id: stored.id).json[name]
        }
        tenant.apply(values)
      } else {
        tenant.apply(self.body.object)
      }
      try transaction.put(tenant)
      return self.json(tenant)
    }
  }

  /// `tenants/{tenant}` (DELETE).
  func deleteTenant() async throws -> JSONObject {
    try await write { transaction in
      _ = try self.storedTenant(transaction.reader)
      try transaction.removeTenant(self.resource ?? "")
      return [:]
    }
  }
}
