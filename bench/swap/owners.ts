/** New keys with tokens of which Permit2 may take all: an owner may have only so many orders pending. */
import { Contract, MaxUint256, Wallet } from 'ethers';
import { sandboxIssuerKey } from '../../deploy/sandbox/accounts.js';
import { mined } from '../../deploy/transactions.js';
import { tokenOf, type Stack } from '../../test/support/stack.js';

const ERC20 = ['function mint(address, uint256)', 'function approve(address, uint256)', 'function deposit() payable'];
/** For the gas of its approvals. */
const GAS_WEI = 10n ** 19n;

/** Units of each token by symbol. Ether is wrapped, and USDC minted. */
export async function fundedOwner(stack: Stack, units: { WETH?: bigint; USDC?: bigint }): Promise<Wallet> {
  const { provider, manifest } = stack;
  const owner = new Wallet(Wallet.createRandom().privateKey, provider);
  const { WETH = 0n, USDC = 0n } = units;
  await provider.send('hardhat_setBalance', [owner.address, `0x${(WETH + GAS_WEI).toString(16)}`]);
  const at = (symbol: string, signer: Wallet) => new Contract(tokenOf(stack, symbol).address, ERC20, signer);
  if (WETH > 0n) await mined(at('WETH', owner).getFunction('deposit').send({ value: WETH }));
  if (USDC > 0n)
    await mined(at('USDC', new Wallet(sandboxIssuerKey(), provider)).getFunction('mint').send(owner.address, USDC));
  for (const symbol of Object.keys(units))
    await mined(at(symbol, owner).getFunction('approve').send(manifest.contracts['permit2'], MaxUint256));
  return owner;
}
