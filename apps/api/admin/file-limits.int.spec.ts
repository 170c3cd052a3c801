import { AdminUnderTest } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
beforeAll(async () => {
  admin = await AdminUnderTest.start({ ORGANIZATION_FILES: 5_000 });
});
afterAll(() => admin.stop());

test('an organization shows the limits in force: its own, or those of the installation', async () => {
  const params = { organizationId: admin.api.organizationId };
  const set = await admin.do('setFileQuota', { params, body: { maxCount: 9 } });
  expect(set.organization.files).toMatchObject({ maxCount: 9, limits: { maxCount: 9, maxBytes: null } });
  await admin.do('setFileQuota', { params, body: { maxCount: null, maxBytes: 100 } });
  const { organization } = await admin.do('getOrganization', { params });
  expect(organization.files).toMatchObject({ maxCount: null, limits: { maxCount: 5_000, maxBytes: 100 } });
  const { organizations } = await admin.do('listOrganizations');
  expect(organizations).toContainEqual(organization);
});
