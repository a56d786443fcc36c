import { formatUnits } from '../../../core/amounts.js';
import type { SnippetSwap } from './snippet-swap.js';

/** A contract that swaps for its caller, or one that holds a limit order which anybody may fill. */
export function solidity(swap: SnippetSwap): string {
  const { deployment, sell, buy } = swap;
  const addressCode = (address: string): string => `address(bytes20(hex"${address.slice(2)}"))`;
  return `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

interface IERC20 {
    function approve(address spender, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

interface IEntrypoint {
    function swap(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut,
        address recipient,
        uint256 deadline
    ) external returns (uint256 amountOut);
}

// Compare these with what the operator published.
IEntrypoint constant ENTRYPOINT = IEntrypoint(${addressCode(deployment.contracts.entrypoint?.address ?? '0x')});
IERC20 constant SOLD = IERC20(${addressCode(sell.address)});
IERC20 constant BOUGHT = IERC20(${addressCode(buy.address)});

${swap.mode === 'limit' ? limitOrder(swap) : swapNow(swap)}`;
}

const pair = ({ sell, buy, units }: SnippetSwap): string =>
  `${formatUnits(units, sell.decimals)} ${ascii(sell.symbol)}, for ${ascii(buy.symbol)}`;

function swapNow(swap: SnippetSwap): string {
  return `/// Sells ${pair(swap)}, of whoever calls it and has approved it to take them.
contract SwapOnCurvebook {
    function swap() external returns (uint256 amountOut) {
        SOLD.transferFrom(msg.sender, address(this), ${swap.units});
        SOLD.approve(address(ENTRYPOINT), ${swap.units});
        return ENTRYPOINT.swap(
            address(SOLD), address(BOUGHT), ${swap.units}, ${swap.minBuyUnits}, msg.sender, block.timestamp
        );
    }
}
`;
}

function limitOrder(swap: SnippetSwap): string {
  const { buy, units, minBuyUnits, validForSec } = swap;
  return `/// Sells ${pair(swap)}, once the curve alone brings at least ${formatUnits(minBuyUnits, buy.decimals)}. Contracts sign nothing: this
/// one holds what it sells, and anybody who pays the gas may fill it.
contract LimitOrderOnCurvebook {
    address private immutable OWNER = msg.sender;
    uint256 private immutable VALID_TO = block.timestamp + ${validForSec};

    /// For the owner, who has approved this contract to take what it sells.
    function place() external {
        require(msg.sender == OWNER);
        SOLD.transferFrom(OWNER, address(this), ${units});
    }

    /// Reverts while the curve brings less.
    function fill() external returns (uint256 amountOut) {
        SOLD.approve(address(ENTRYPOINT), ${units});
        return ENTRYPOINT.swap(address(SOLD), address(BOUGHT), ${units}, ${minBuyUnits}, OWNER, VALID_TO);
    }

    /// Gives back what was not sold.
    function cancel() external {
        require(msg.sender == OWNER);
        SOLD.transfer(OWNER, SOLD.balanceOf(address(this)));
    }
}
`;
}

/** Symbols are whatever a token says: none of them ends a comment or a line. */
const ascii = (symbol: string): string => symbol.replace(/[^A-Za-z0-9.$_-]/g, '?').slice(0, 20);
